package cliutil

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/flags"
)

// Arguments returns a check of a command's arguments. names describes them: "ID..." means
// one or more, and "[ID]" means optional.
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
			return exit.UsageError("%s requires %s (see: %s --help)", cmd.Name(), names, cmd.CommandPath())
		case len(args) > most && most > 0:
			return exit.UsageError("%s takes %s, but %q follows; quote an argument that contains spaces (see: %s --help)", cmd.Name(), names, args[most], cmd.CommandPath())
		case len(args) > most:
			return UnknownArgument(cmd, args[most:])
		}
		return nil
	}
}

// AddGroup adds commands that the help shows under a title.
func AddGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = id
		root.AddCommand(cmd)
	}
}

// Group makes cmd a command that only has subcommands. Without arguments it prints its
// help.
func Group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.DisableFlagsInUseLine = true
	cmd.Args = cobra.ArbitraryArgs // RunE reports them
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return UnknownArgument(cmd, args)
	}
	cmd.AddCommand(commands...)
	return cmd
}

// NewCommand returns a command. See Arguments for the syntax of args.
func NewCommand(use, short, long, example, args string, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Example: example, DisableFlagsInUseLine: true, Args: Arguments(args), RunE: run}
	cmd.Flags().SortFlags = false
	return cmd
}

// UnknownArgument returns the error for unknown arguments. It suggests a similar
// subcommand.
func UnknownArgument(cmd *cobra.Command, args []string) error {
	if near := flags.NearestCommand(cmd, args[0]); near != "" {
		return exit.UsageError("unknown argument %q; did you mean %q? (see: %s --help)", args[0], near, cmd.CommandPath())
	}
	return exit.UsageError("unknown argument %q (see: %s --help)", args[0], cmd.CommandPath())
}
