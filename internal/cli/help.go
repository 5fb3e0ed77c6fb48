package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/duration"
)

// overview is the help of the program as a whole. It names the options that
// are needed most; the help of serve has all.
const overview = `beanpole is a work queue server that speaks the beanstalk protocol.

Examples:
  beanpole                                    serve 127.0.0.1:11300, jobs in memory
  beanpole -l 0.0.0.0 -b /var/lib/beanpole    serve the network, jobs on disk
  beanpole put mail 'to: a@example.com'       put a job into the tube mail
  beanpole work mail -- sendmail -t           run a command for each job of it
  beanpole top                                watch the tubes

Usage:
  beanpole [options]            run the server; the options of beanstalkd work unchanged
  beanpole COMMAND [options]    see: beanpole COMMAND --help
`

const overviewEnd = `
Options of the server, the most common (beanpole serve --help has all):
  -l ADDRESS   listen on ADDRESS (127.0.0.1), IP:PORT or unix:PATH; may be repeated
  -p PORT      port for addresses without one (11300)
  -b DIR       keep the jobs in DIR too, so that a restart or crash loses none
  -z BYTES     largest job (65535)
  -u USER      become USER when the sockets are open
  -V           log more
  -v           print the version

Documentation: ` + documentation + "\n"

// documentation is where the pages for users are.
const documentation = "https://github.com/beanpole-mq/beanpole/tree/main/doc"

// newHelp is the help command: "beanpole help serve" is "beanpole serve --help".
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "explain a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return cliutil.UnknownArgument(root, args)
			}
			return topic.Help()
		},
	}
}

// printHelp prints what a command does, examples, and then the rest.
func printHelp(cmd *cobra.Command, _ []string) {
	w := cmd.OutOrStdout()
	if !cmd.HasParent() {
		fmt.Fprint(w, overview)
		for _, g := range cmd.Groups() {
			fmt.Fprintf(w, "\n%s\n", g.Title)
			printCommands(w, cmd, g.ID)
		}
		fmt.Fprint(w, overviewEnd)
		return
	}
	what, more, _ := strings.Cut(strings.TrimSpace(sentence(cmd)), "\n\n")
	fmt.Fprintln(w, what)
	if cmd.Example != "" {
		fmt.Fprintf(w, "\nExamples:\n%s\n", strings.TrimRight(cmd.Example, "\n"))
	}
	fmt.Fprintf(w, "\nUsage:\n  %s\n", cmd.UseLine())
	if more != "" {
		fmt.Fprintf(w, "\n%s\n", more)
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintln(w, "\nCommands:")
		printCommands(w, cmd, "")
	}
	printFlags(w, cmd.Flags())
}

// printCommands prints the commands of a group.
func printCommands(w io.Writer, cmd *cobra.Command, group string) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.GroupID == group {
			fmt.Fprintf(w, "  %-11s %s\n", c.Name(), c.Short)
		}
	}
}

// printFlags prints the flags by group, the explanations in one column.
func printFlags(w io.Writer, flags *pflag.FlagSet) {
	groups, width := flagGroups(flags), 0
	for _, g := range groups {
		for _, r := range g.rows {
			width = max(width, len(r.left))
		}
	}
	indent := "\n" + strings.Repeat(" ", 2+width+2)
	for _, g := range groups {
		fmt.Fprintf(w, "\n%s:\n", g.title)
		for _, r := range g.rows {
			fmt.Fprintf(w, "  %-*s  %s\n", width, r.left, strings.ReplaceAll(r.usage, "\n", indent))
		}
	}
}

// A flagGroup is flags that the help shows under a title.
type flagGroup struct {
	title string
	rows  []flagRow
}

// A flagRow is a flag in the help.
type flagRow struct {
	left  string // names and value
	usage string // lines
}

// ownTitle is that of the flags that have no other.
const ownTitle = "Options"

// flagGroups returns the flags in the order of their definition. A command's own come first, and
// those that say where the server is, which are the same for many commands, last.
func flagGroups(flags *pflag.FlagSet) (groups []flagGroup) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		title := ownTitle
		if a := f.Annotations[cliutil.GroupKey]; len(a) > 0 {
			title = a[0]
		}
		i := slices.IndexFunc(groups, func(g flagGroup) bool { return g.title == title })
		if i < 0 {
			i, groups = len(groups), append(groups, flagGroup{title: title})
		}
		groups[i].rows = append(groups[i].rows, describeFlag(f))
	})
	place := map[string]int{ownTitle: -1, cliutil.ServerTitle: 1}
	slices.SortStableFunc(groups, func(a, b flagGroup) int { return place[a.title] - place[b.title] })
	return groups
}

func describeFlag(f *pflag.Flag) flagRow {
	value, usage := pflag.UnquoteUsage(f)
	r := flagRow{left: "    --" + f.Name, usage: withDefault(usage, f)}
	if f.Name == "help" {
		r.usage = "print this help"
	}
	if f.Shorthand != "" {
		r.left = "-" + f.Shorthand + ", --" + f.Name
	}
	if f.NoOptDefVal == "" && value != "" {
		r.left += " " + value
	}
	return r
}

// withDefault adds the default of an option to its explanation, if there is one and the
// explanation does not end with it.
func withDefault(usage string, f *pflag.Flag) string {
	value := strings.Trim(f.DefValue, "[]")
	if d, err := time.ParseDuration(value); err == nil && f.Value.Type() == "duration" {
		value = duration.Format(d)
	}
	switch {
	case value == "", value == "0", value == "0s", value == "false", strings.HasSuffix(usage, ")"):
		return usage
	}
	return usage + " (" + value + ")"
}
