// Package flags parses the values of options, and groups options in the help.
//
// A number consists of decimal digits only, as in the protocol: no sign, spaces, 0x or
// underscores.
package flags

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Number parses a number that is at most most.
func Number(s, what string, most uint64) (uint64, error) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, fmt.Errorf("want %s as a decimal number", what)
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n > most {
		return 0, fmt.Errorf("want %s, at most %d", what, most)
	}
	return n, nil
}

// units contains the units of sizes, in lower case.
var units = map[string]int64{
	"": 1, "b": 1,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
}

// Size parses a number of bytes of at most most, with or without a unit: 65535, 1MB
// (1000000), 1MiB (1048576).
func Size(s string, most int64) (int64, error) {
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	unit, known := units[strings.ToLower(s[digits:])]
	n, err := strconv.ParseInt(s[:digits], 10, 64)
	switch {
	case digits == 0, !known:
		return 0, errors.New("want bytes as a decimal number, or with a unit: 100kB, 64MB, 1GB (of 1000), 64MiB, 1GiB (of 1024)")
	case err != nil, n > most/unit:
		return 0, fmt.Errorf("want bytes, at most %d", most)
	}
	return n * unit, nil
}

// Count returns a parser for numbers of at least 1.
func Count(what string) func(string) (int, error) {
	return func(s string) (int, error) {
		n, err := Number(s, what, math.MaxInt32)
		if err == nil && n == 0 {
			err = errors.New("want at least 1")
		}
		return int(n), err
	}
}

// Into returns a flag function that parses the value and stores the result.
func Into[T any](dst *T, parse func(string) (T, error)) func(string) error {
	return func(s string) error {
		v, err := parse(s)
		if err == nil {
			*dst = v
		}
		return err
	}
}

// IntoCount returns a flag function that stores a number of at least 1.
func IntoCount(dst *int, what string) func(string) error { return Into(dst, Count(what)) }

// GroupKey is the annotation of a flag that contains the title of its group.
const GroupKey = "group"

// AddGroup defines flags that the help shows under a title, in the order in which they
// are defined.
func AddGroup(flags *pflag.FlagSet, title string, define func(*pflag.FlagSet)) {
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

// Nearest returns the most similar of names, or "".
func Nearest(names []string, wrong string) string {
	all := &cobra.Command{} // Command implements the distance between names
	for _, name := range names {
		all.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	return NearestCommand(all, wrong)
}

// NearestCommand returns the subcommand of cmd with the most similar name, or "".
func NearestCommand(cmd *cobra.Command, wrong string) string {
	for letters := range 2 { // number of wrong or missing letters, minus one
		cmd.SuggestionsMinimumDistance = letters + 1
		if near := cmd.SuggestionsFor(wrong); len(near) > 0 {
			return near[0]
		}
	}
	return ""
}
