package cliutil

import (
	"strings"

	"github.com/spf13/cobra"
)

// Arguments returns the check of a command's arguments, which are named: "ID..." is one or
// more, "[ID]" may be missing.
func Arguments(names string) cobra.PositionalArgs {
	least, most := 0, 0
	for name := range strings.FieldsSeq(names) {
		if !strings.HasPrefix(name, "[") {
			least++
		}
		most++
		if strings.HasSuffix(strings.Trim(name, "[]"), "...") {
			most = 1 << 30
		}
	}
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return UsageError("%s needs %s (see: %s --help)", cmd.Name(), names, cmd.CommandPath())
		case len(args) > most && most > 0:
			return UsageError("%s takes %s, and no %q: an argument with blanks is quoted (see: %s --help)", cmd.Name(), names, args[most], cmd.CommandPath())
		case len(args) > most:
			return UnknownArgument(cmd, args[most:])
		}
		return nil
	}
}

// AddGroup adds commands that the help shows under a title of their own.
func AddGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = id
		root.AddCommand(cmd)
	}
}

// Group makes a command one that only has others: without arguments it prints its help.
func Group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.DisableFlagsInUseLine = true
	cmd.Args = cobra.ArbitraryArgs // RunE says what is wrong with them
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return UnknownArgument(cmd, args)
	}
	cmd.AddCommand(commands...)
	return cmd
}

// NewCommand returns a command that takes these arguments besides options, by name: "ID..." is
// one or more, "[ID]" may be missing.
func NewCommand(use, short, long, example, args string, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Example: example, DisableFlagsInUseLine: true, Args: Arguments(args), RunE: run}
	cmd.Flags().SortFlags = false
	return cmd
}

// UnknownArgument returns the error for arguments that a command does not take, and
// names the subcommand that was perhaps meant.
func UnknownArgument(cmd *cobra.Command, args []string) error {
	if near := nearest(cmd, args[0]); near != "" {
		return UsageError("unknown argument %q; did you mean %q? (see: %s --help)", args[0], near, cmd.CommandPath())
	}
	return UsageError("unknown argument %q (see: %s --help)", args[0], cmd.CommandPath())
}

// nearest returns the subcommand that a wrong name was meant to be, or "".
func nearest(cmd *cobra.Command, wrong string) string {
	for letters := range 2 { // wrong or missing
		cmd.SuggestionsMinimumDistance = letters + 1
		if near := cmd.SuggestionsFor(wrong); len(near) > 0 {
			return near[0]
		}
	}
	return ""
}
