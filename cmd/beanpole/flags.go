package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// flagError puts what pflag found wrong into the words of our one-line errors.
func flagError(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := "--" + e.GetSpecifiedName()
		if e.GetSpecifiedShortnames() != "" {
			name = "-" + e.GetSpecifiedName()[:1]
		}
		if near := nearestFlag(cmd.Flags(), e.GetSpecifiedName()); near != "" && e.GetSpecifiedShortnames() == "" {
			return usageError("unknown option %s; did you mean --%s? (see: %s --help)", name, near, cmd.CommandPath())
		}
		return usageError("unknown option %s (see: %s --help)", name, cmd.CommandPath())
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return usageError("option %s needs a value (see: %s --help)", spelling(e.GetFlag()), cmd.CommandPath())
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		cause := e.Unwrap()
		switch {
		case e.GetFlag().Value.Type() == "bool":
			cause = errors.New("want true or false")
		case errors.Is(cause, strconv.ErrSyntax):
			cause = errors.New("want a number")
		case errors.Is(cause, strconv.ErrRange):
			cause = strconv.ErrRange // without the name of a function
		}
		return usageError("bad value %q for %s: %w", e.GetValue(), spelling(e.GetFlag()), cause)
	}
	return usageError("%w (see: %s --help)", err, cmd.CommandPath())
}

// nearestFlag returns the name that a wrong one was meant to be, or "". cobra knows
// which words are near each other, but compares names of commands only.
func nearestFlag(flags *pflag.FlagSet, wrong string) string {
	names := &cobra.Command{}
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	return nearest(names, wrong)
}

func spelling(f *pflag.Flag) string {
	if f.Shorthand == "" || f.Hidden {
		return "--" + f.Name
	}
	return "-" + f.Shorthand + " (--" + f.Name + ")"
}

// The values of flags. A number is decimal digits and nothing else, as in the
// protocol: no sign, no blanks, no 0x, no underscores.

func parseNumber(s, what string, most uint64) (uint64, error) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, fmt.Errorf("want %s as a decimal number", what)
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n > most {
		return 0, fmt.Errorf("want %s, at most %d", what, most)
	}
	return n, nil
}

// counting returns a function that reads a number from 1 on.
func counting(what string) func(string) (int, error) {
	return func(s string) (int, error) {
		n, err := parseNumber(s, what, math.MaxInt32)
		if err == nil && n == 0 {
			err = errors.New("want at least 1")
		}
		return int(n), err
	}
}

// intoCount returns a flag's function that stores a number from 1 on.
func intoCount(dst *int, what string) func(string) error { return into(dst, counting(what)) }

func parseBytes(s string) (uint64, error) {
	return parseNumber(s, "bytes", math.MaxInt64)
}

// parseMillis reads milliseconds; a century is the most that it takes.
func parseMillis(s string) (time.Duration, error) {
	n, err := parseNumber(s, "milliseconds", 100*365*24*3600*1000)
	return time.Duration(n) * time.Millisecond, err
}

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, errors.New("want a duration with its unit, such as 30s or 5m, or 0")
	}
	return d, nil
}

func showCompat(c wire.Compat) any { return c.String() }

// showDuration writes what parseDuration reads, 5m and not 5m0s.
func showDuration(d time.Duration) any {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func parseMode(s string) (fs.FileMode, error) {
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil || n > uint64(fs.ModePerm) {
		return 0, errors.New("want permissions in octal, such as 0660")
	}
	return fs.FileMode(n), nil
}

func showMode(m fs.FileMode) any { return fmt.Sprintf("%#o", m) }

func parseSwitch(s string) (bool, error) {
	on, err := strconv.ParseBool(s)
	if err != nil {
		return false, errors.New("want true or false")
	}
	return on, nil
}

// into returns a flag's function that stores what parse makes of the value.
func into[T any](dst *T, parse func(string) (T, error)) func(string) error {
	return func(s string) error {
		v, err := parse(s)
		if err == nil {
			*dst = v
		}
		return err
	}
}
