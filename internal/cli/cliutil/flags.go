package cliutil

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FlagError explains an error of pflag.
func FlagError(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := "--" + e.GetSpecifiedName()
		if e.GetSpecifiedShortnames() != "" {
			name = "-" + e.GetSpecifiedName()[:1]
		}
		if near := nearestFlag(cmd.Flags(), e.GetSpecifiedName()); near != "" && e.GetSpecifiedShortnames() == "" {
			return UsageError("unknown option %s; did you mean --%s? (see: %s --help)", name, near, cmd.CommandPath())
		}
		return UsageError("unknown option %s (see: %s --help)", name, cmd.CommandPath())
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return UsageError("option %s requires a value (see: %s --help)", spelling(e.GetFlag()), cmd.CommandPath())
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
		return UsageError("bad value %q for %s: %w", e.GetValue(), spelling(e.GetFlag()), cause)
	}
	return UsageError("%w (see: %s --help)", err, cmd.CommandPath())
}

// nearestFlag returns the flag with a similar name, or "".
func nearestFlag(flags *pflag.FlagSet, wrong string) string {
	var names []string
	part := "" // a flag with a name that ends in wrong
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && strings.HasSuffix(f.Name, "-"+wrong) {
			part = f.Name
		}
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return cmp.Or(Nearest(names, wrong), part)
}

// Nearest returns the most similar of names, or "".
func Nearest(names []string, wrong string) string {
	all := &cobra.Command{} // it implements the distance of names
	for _, name := range names {
		all.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	return nearest(all, wrong)
}

func spelling(f *pflag.Flag) string {
	if f.Shorthand == "" || f.Hidden {
		return "--" + f.Name
	}
	return "-" + f.Shorthand + " (--" + f.Name + ")"
}

// GroupKey is the annotation of a flag that contains the title of its group.
const GroupKey = "group"

// AddFlags defines flags that the help shows under a title, in the order of their definition.
func AddFlags(flags *pflag.FlagSet, title string, define func(*pflag.FlagSet)) {
	group := pflag.NewFlagSet(title, pflag.ContinueOnError)
	group.SortFlags = false
	define(group)
	group.VisitAll(func(f *pflag.Flag) {
		if f.Annotations == nil {
			f.Annotations = make(map[string][]string)
		}
		f.Annotations[GroupKey] = []string{title}
	})
	flags.SortFlags = false
	flags.AddFlagSet(group)
}
