package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/cli/kit"
	"github.com/beanpole-mq/beanpole/internal/cli/manual"
)

// writeManual writes the manual below a directory such as /usr/share/man, from the
// help and from the file that explains the settings. "make manual" calls it; the
// binary that is installed does not have it.
func writeManual(root *cobra.Command, dir, settings string) error {
	text, err := os.ReadFile(settings)
	if err != nil {
		return fmt.Errorf("the explained settings: %w", err)
	}
	for _, p := range manualPages(root, string(text)) {
		sub := filepath.Join(dir, fmt.Sprintf("man%d", p.Section))
		if err := os.MkdirAll(sub, 0o755); err != nil { // #nosec G301 -- manuals are for everybody
			return err
		}
		f, err := os.Create(filepath.Join(sub, p.FileName()))
		if err != nil {
			return err
		}
		if err := p.Write(f); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// manualPages returns a page for the program, which has the options of the server, one for each
// other command, and one for the configuration file.
func manualPages(root *cobra.Command, settings string) []manual.Page {
	pages := []manual.Page{programPage(root), settingsPage(versionOf(root), settings)}
	var add func(cmd *cobra.Command)
	add = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() && c.Name() != "serve" {
				pages = append(pages, commandPage(c))
				add(c)
			}
		}
	}
	add(root)
	return pages
}

func programPage(root *cobra.Command) manual.Page {
	serve, _, err := root.Find([]string{"serve"})
	if err != nil {
		panic(err) // it is ours
	}
	p := manual.Page{
		Name: "beanpole", Section: 1, Version: versionOf(root), Short: root.Short,
		Synopsis: []string{"beanpole [serve] [options]", "beanpole COMMAND [options] [arguments]"},
		Sections: []manual.Section{{Title: "DESCRIPTION", Text: serve.Long}},
	}
	p.Sections = append(p.Sections, optionSections(serve.Flags())...)
	commands := manual.Section{Title: "COMMANDS", Text: "Each has a page of its own, and --help."}
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.Name() != "serve" {
			commands.Items = append(commands.Items, manual.Item{Name: pageName(c) + "(1)", Text: c.Short})
		}
	}
	return withMore(p, commands,
		manual.Section{Title: "EXAMPLES", Text: serveExample},
		manual.Section{Title: "SIGNALS", Text: serveSignals},
		manual.Section{Title: "ENVIRONMENT", Items: []manual.Item{
			{Name: "BEANPOLE_NAME", Text: "the option of the server with that long name, as said above"},
			{Name: "BEANPOLE_ADDR", Text: "the address of the server that the commands for the queue ask"},
			{Name: "BEANPOLE_ADMIN", Text: "the address of its admin pages, for the commands that need them"},
			{Name: "BEANPOLE_TOKEN, BEANPOLE_TO_TOKEN", Text: "the token for that server, and for the one to which mirror copies"},
			{Name: "LISTEN_FDS, NOTIFY_SOCKET", Text: "the protocols of systemd: sockets that are passed, and readiness"},
		}},
		manual.Section{Title: "FILES", Items: []manual.Item{
			{Name: "/etc/beanpole/beanpole.toml", Text: "the settings of the service; see beanpole.toml(5)"},
			{Name: "/var/lib/beanpole", Text: "the journal of the service: files beanpole.*.wal"},
			{Name: "/var/lib/beanpole/cluster", Text: "what makes it that of a member of a cluster: keys, certificates, tokens and the cluster's log"},
			{Name: "/usr/share/doc/beanpole", Text: "the documentation: how to operate, secure and watch a server, the protocol, the JSON API"},
		}},
		manual.Section{Title: "EXIT STATUS", Items: exitStatus},
	)
}

// exitStatus says what the program's exit codes mean.
var exitStatus = []manual.Item{
	{Name: "0", Text: "it is done; a server was stopped by a signal"},
	{Name: fmt.Sprint(kit.ExitFailure), Text: "something failed; the line on standard error says what"},
	{Name: "2", Text: "a command for the queue: what was asked for is not there"},
	{Name: "3", Text: "such a command: the server cannot be reached, or the connection was lost"},
	{Name: "4", Text: "such a command: the server refuses, as the token is missing or wrong or does not allow this"},
	{Name: fmt.Sprint(kit.ExitUsage), Text: "the command line, an environment variable or the configuration file is wrong"},
	{Name: fmt.Sprint(kit.ExitJournal), Text: "the journal's directory is missing, not permitted, in use, or damaged"},
	{Name: fmt.Sprint(kit.ExitLookup), Text: "the user of -u cannot be looked up"},
	{Name: fmt.Sprint(kit.ExitNoUser), Text: "there is no such user"},
	{Name: fmt.Sprint(kit.ExitPrivilege), Text: "the process may not become that user"},
	{Name: fmt.Sprint(kit.ExitSocket), Text: "a socket cannot be opened"},
	{Name: "130", Text: "a command was interrupted by a signal"},
}

func commandPage(cmd *cobra.Command) manual.Page {
	p := manual.Page{
		Name: pageName(cmd), Section: 1, Version: versionOf(cmd), Short: cmd.Short,
		Synopsis: []string{cmd.UseLine()},
		Sections: []manual.Section{{Title: "DESCRIPTION", Text: sentence(cmd)}},
	}
	p.Sections = append(p.Sections, optionSections(cmd.Flags())...)
	commands := manual.Section{Title: "COMMANDS"}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			commands.Items = append(commands.Items, manual.Item{Name: pageName(c) + "(1)", Text: c.Short})
		}
	}
	return withMore(p, commands, manual.Section{Title: "EXAMPLES", Text: cmd.Example},
		manual.Section{Title: "EXIT STATUS", Text: "0 if it is done; beanpole(1) says what the others mean."})
}

func settingsPage(version, explained string) manual.Page {
	p := manual.Page{
		Name: "beanpole.toml", Section: 5, Version: version, Short: "settings of the beanpole server",
		Synopsis: []string{"beanpole --config FILE", "/etc/beanpole/beanpole.toml"},
		Sections: manual.Settings(explained),
	}
	return withMore(p)
}

// withMore adds sections that are not empty, and where to read on.
func withMore(p manual.Page, more ...manual.Section) manual.Page {
	for _, s := range more {
		if s.Text != "" || len(s.Items) > 0 {
			p.Sections = append(p.Sections, s)
		}
	}
	also := slices.DeleteFunc([]string{"beanpole(1)", "beanpole.toml(5)"}, func(page string) bool {
		return strings.HasPrefix(page, p.Name+"(")
	})
	p.Sections = append(p.Sections, manual.Section{Title: "SEE ALSO", Text: strings.Join(also, ", ") + "\n\nThe documentation is in /usr/share/doc/beanpole, and at " + homepage})
	return p
}

const homepage = "https://github.com/beanpole-mq/beanpole"

// pageName returns what the page of a command is called.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// sentence returns what a command does.
func sentence(cmd *cobra.Command) string {
	if cmd.Long != "" {
		return cmd.Long
	}
	return strings.ToUpper(cmd.Short[:1]) + cmd.Short[1:] + "."
}

// optionSections returns the options of a command, by their groups.
func optionSections(flags *pflag.FlagSet) []manual.Section {
	sections := []manual.Section{{Title: "OPTIONS"}}
	groups := make(map[string]int)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		row := describeFlag(f)
		at, ok := groups[row.title]
		if !ok {
			if row.title != "Options" {
				sections = append(sections, manual.Section{Title: row.title})
			}
			at = len(sections) - 1
			groups[row.title] = at
		}
		sections[at].Items = append(sections[at].Items, manual.Item{Name: strings.TrimSpace(row.left), Text: row.usage})
	})
	if len(groups) == 0 {
		return nil
	}
	return sections
}
