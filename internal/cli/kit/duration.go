package kit

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// ParseDuration reads a duration that is not negative. The protocol counts seconds, so those
// who know it forget the unit.
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil && s != "" && strings.Trim(s, "0123456789") == "":
		return 0, fmt.Errorf("want a time with its unit: %ss is seconds, %[1]sm minutes, %[1]sh hours", s)
	case err != nil:
		return 0, errors.New("want a time with its unit, such as 30s, 10m or 1h30m")
	case d < 0:
		return 0, errors.New("it must not be negative")
	}
	return d, nil
}

// FormatDuration writes what ParseDuration reads, 5m and not 5m0s.
func FormatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// A duration is the value of an option that is a time.
type duration struct {
	value *time.Duration
	least time.Duration
}

// mostSeconds is the longest time that the protocol can tell.
const mostSeconds = math.MaxUint32

// DurationVar defines an option that is a time, at least so long if it is given.
func DurationVar(fs *pflag.FlagSet, p *time.Duration, name, letter string, least, otherwise time.Duration, usage string) {
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
	v, err := ParseDuration(text)
	switch {
	case err != nil:
		return err
	case v < d.least:
		return fmt.Errorf("want at least %s", d.least)
	case v > mostSeconds*time.Second:
		return fmt.Errorf("want at most %ds, which is 136 years", int64(mostSeconds))
	}
	*d.value = v
	return nil
}
