package cliutil

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/flags"
)

// FlagError explains an error of pflag.
func FlagError(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := "--" + e.GetSpecifiedName()
		if e.GetSpecifiedShortnames() != "" {
			name = "-" + e.GetSpecifiedName()[:1]
		}
		if near := nearestFlag(cmd.Flags(), e.GetSpecifiedName()); near != "" && e.GetSpecifiedShortnames() == "" {
			return exit.UsageError("unknown option %s; did you mean --%s? (see: %s --help)", name, near, cmd.CommandPath())
		}
		return exit.UsageError("unknown option %s (see: %s --help)", name, cmd.CommandPath())
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return exit.UsageError("option %s requires a value (see: %s --help)", spelling(e.GetFlag()), cmd.CommandPath())
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		cause := e.Unwrap()
		switch e.GetFlag().Value.Type() {
		case "bool":
			cause = errors.New("want true or false")
		case "uint32":
			cause = fmt.Errorf("want a number from 0 to %d", uint32(math.MaxUint32))
		case "int":
			cause = errors.New("want a number")
		case "uint", "uint64":
			cause = errors.New("want a number from 0 on")
		}
		return exit.UsageError("bad value %q for %s: %w", e.GetValue(), spelling(e.GetFlag()), cause)
	}
	return exit.UsageError("%w (see: %s --help)", err, cmd.CommandPath())
}

// nearestFlag returns the flag with a similar name, or "".
func nearestFlag(fs *pflag.FlagSet, wrong string) string {
	var names []string
	part := "" // a flag with a name that ends in wrong
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && strings.HasSuffix(f.Name, "-"+wrong) {
			part = f.Name
		}
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return cmp.Or(flags.Nearest(names, wrong), part)
}

func spelling(f *pflag.Flag) string {
	if f.Shorthand == "" || f.Hidden {
		return "--" + f.Name
	}
	return "-" + f.Shorthand + " (--" + f.Name + ")"
}
