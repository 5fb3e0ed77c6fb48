package cliutil

import (
	"fmt"
	"math"
	"time"

	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/duration"
)

// mostSeconds is the longest time in the protocol.
const mostSeconds = math.MaxUint32

// DurationVar defines an option whose value is a duration of at least least. The help
// shows the default if it is positive.
func DurationVar(fs *pflag.FlagSet, p *time.Duration, name, letter string, least, otherwise time.Duration, usage string) {
	*p = otherwise
	fs.FuncP(name, letter, usage, func(text string) error {
		v, err := duration.Parse(text)
		switch {
		case err != nil:
			return err
		case v < least:
			return fmt.Errorf("want at least %s", least)
		case v > mostSeconds*time.Second:
			return fmt.Errorf("want at most %ds, which is 136 years", int64(mostSeconds))
		}
		*p = v
		return nil
	})
	if otherwise > 0 {
		fs.Lookup(name).DefValue = duration.Format(otherwise)
	}
}

// UntilVar defines an option whose value is a time of day in UTC. It stores the duration
// until that time.
func UntilVar(fs *pflag.FlagSet, p *time.Duration, name, usage string) {
	fs.Func(name, usage, func(clock string) (err error) {
		*p, err = duration.Until(clock, time.Now())
		return err
	})
}

// OfSeconds returns a number of seconds as a duration.
func OfSeconds[N int64 | uint32](n N) time.Duration { return time.Duration(n) * time.Second }
