package queue

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// A duration is the value of an option that is a time. The protocol counts seconds, so
// those who know it forget the unit.
type duration struct {
	value *time.Duration
	least time.Duration
}

// mostSeconds is the longest time that the protocol can tell.
const mostSeconds = math.MaxUint32

// durationVar defines an option that is a time, at least so long if it is given.
func durationVar(fs *pflag.FlagSet, p *time.Duration, name, letter string, least, otherwise time.Duration, usage string) {
	*p = otherwise
	fs.VarP(duration{p, least}, name, letter, usage)
}

// Type implements pflag.Value.
func (duration) Type() string { return "duration" }

// String implements pflag.Value.
func (d duration) String() string {
	if d.value == nil {
		return ""
	}
	return d.value.String()
}

// Set implements pflag.Value.
func (d duration) Set(text string) error {
	v, err := time.ParseDuration(text)
	switch {
	case err != nil && text != "" && strings.Trim(text, "0123456789") == "":
		return fmt.Errorf("want a time with its unit: %ss is seconds, %sm minutes, %sh hours", text, text, text)
	case err != nil:
		return errors.New("want a time with its unit, such as 30s, 10m or 1h30m")
	case v < 0 && d.least == 0:
		return errors.New("it must not be negative")
	case v < d.least:
		return fmt.Errorf("want at least %s", d.least)
	case v > mostSeconds*time.Second:
		return fmt.Errorf("want at most %ds, which is 136 years", int64(mostSeconds))
	}
	*d.value = v
	return nil
}
