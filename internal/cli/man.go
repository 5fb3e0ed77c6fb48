package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// writeManual writes the manual below a directory such as /usr/share/man, from the
// help and from the file that explains the settings. render makes roff of Markdown. "make
// manual" calls it; the binary that is installed does not have it.
func writeManual(root *cobra.Command, dir, settings string, render func(markdown []byte) []byte) error {
	text, err := os.ReadFile(settings)
	if err != nil {
		return fmt.Errorf("the explained settings: %w", err)
	}
	for name, page := range manualPages(root, string(text)) {
		sub := filepath.Join(dir, "man"+name[len(name)-1:])
		if err := os.MkdirAll(sub, 0o755); err != nil { // #nosec G301 -- manuals are for everybody
			return err
		}
		roff := dash.ReplaceAll(render([]byte(page)), []byte(`\-`))
		if err := os.WriteFile(filepath.Join(sub, name), roff, 0o644); err != nil { // #nosec G306 -- the same
			return err
		}
	}
	return nil
}

// dash is a minus as it is typed, which roff takes for a hyphen unless it is escaped.
var dash = regexp.MustCompile(`\\?-`)

// manualPages returns a page for the program, which has the options of the server, one for each
// other command, and one for the configuration file, all as Markdown, by the names of their files.
func manualPages(root *cobra.Command, settings string) map[string]string {
	pages := map[string]string{
		"beanpole.1": programPage(root),
		"beanpole.toml.5": manualHead(root, "beanpole.toml", 5, "settings of the beanpole server", "beanpole --config FILE", "/etc/beanpole/beanpole.toml") +
			"# DESCRIPTION\n" + settingsManual(settings) + seeAlso("beanpole(1)"),
	}
	var add func(cmd *cobra.Command)
	add = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() && c.Name() != "serve" {
				pages[pageName(c)+".1"] = commandPage(c)
				add(c)
			}
		}
	}
	add(root)
	return pages
}

func programPage(root *cobra.Command) string {
	serve, _, err := root.Find([]string{"serve"})
	if err != nil {
		panic(err) // it is ours
	}
	page := manualHead(root, "beanpole", 1, root.Short, "beanpole [serve] [options]", "beanpole COMMAND [options] [arguments]") +
		"# DESCRIPTION\n" + markdown(serveLong) + optionsManual(serve.Flags()) + commandsManual(root) +
		"# EXAMPLES\n" + markdown(serveExample) + "# SIGNALS\n" + markdown(serveSignals)
	for _, item := range programManual {
		if item[1] == "" {
			page += item[0]
		} else {
			page += manualItem(item[0], item[1])
		}
	}
	return page + seeAlso("beanpole.toml(5)")
}

// programManual contains the titles, names and texts of the further sections of beanpole(1).
var programManual = [][2]string{
	{"# ENVIRONMENT\n", ""},
	{"BEANPOLE_NAME", "the server's option with this long name"},
	{"BEANPOLE_ADDR", "address of the server, for commands"},
	{"BEANPOLE_ADMIN_ADDR", "address of the admin API of the server, for commands"},
	{"BEANPOLE_TOKEN", "token for the server, for commands"},
	{"LISTEN_FDS, NOTIFY_SOCKET", "protocols of systemd for sockets and readiness"},
	{"# FILES\n", ""},
	{"/etc/beanpole/beanpole.toml", "settings of the service; see beanpole.toml(5)"},
	{"/var/lib/beanpole", "journal of the service: files beanpole.*.wal"},
	{"/var/lib/beanpole/cluster", "keys, certificates, tokens and log of a cluster member"},
	{"/usr/share/doc/beanpole", "documentation of operation, security, monitoring, protocol and JSON API"},
	{"# EXIT STATUS\n", ""},
	{"0", "success, or a server was stopped by a signal"},
	{"1", "failure; the message has the cause"},
	{"2", "no such job or tube, or no job in time"},
	{"3", "the server is unreachable, or the connection was lost"},
	{"4", "the token is missing, wrong or not sufficient"},
	{"5", "the command line, an environment variable or the configuration file is invalid"},
	{"10", "the journal directory is missing, not permitted, in use or damaged"},
	{"32", "the user of -u cannot be looked up"},
	{"33", "no such user"},
	{"34", "the process has no permission to switch to that user"},
	{"111", "a socket cannot be opened"},
	{"130", "a command was interrupted by a signal"},
}

func commandPage(cmd *cobra.Command) string {
	page := manualHead(cmd, pageName(cmd), 1, cmd.Short, cmd.UseLine()) + "# DESCRIPTION\n" + markdown(sentence(cmd)) + optionsManual(cmd.Flags()) + commandsManual(cmd)
	if cmd.Example != "" {
		page += "# EXAMPLES\n" + markdown(cmd.Example)
	}
	return page + "# EXIT STATUS\n0 if it is done; beanpole(1) says what the others mean.\n\n" + seeAlso("beanpole(1), beanpole.toml(5)")
}

// manualHead is the beginning of a page.
func manualHead(cmd *cobra.Command, name string, section int, short string, synopsis ...string) string {
	return fmt.Sprintf("%% %q \"%d\" \"\" \"beanpole %s\" \"beanpole manual\"\n# NAME\n%s - %s\n\n# SYNOPSIS\n%s",
		strings.ToUpper(name), section, versionOf(cmd), escapeMarkdown(name), escapeMarkdown(short), markdown("  "+strings.Join(synopsis, "\n  ")))
}

const homepage = "https://github.com/beanpole-mq/beanpole"

func seeAlso(pages string) string {
	return "# SEE ALSO\n" + pages + "\n\nThe documentation is in /usr/share/doc/beanpole, and at " + homepage + "\n"
}

// commandsManual lists the commands of a command.
func commandsManual(cmd *cobra.Command) string {
	var b strings.Builder
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "serve" {
			b.WriteString(manualItem(pageName(c)+"(1)", c.Short))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "# COMMANDS\n" + b.String()
}

// optionsManual lists the options of a command, by their groups.
func optionsManual(flags *pflag.FlagSet) string {
	page := ""
	for _, g := range flagGroups(flags) {
		if g.title != ownTitle {
			page += "### " + escapeMarkdown(g.title) + "\n"
		}
		for _, r := range g.rows {
			page += manualItem(strings.TrimSpace(r.left), r.usage)
		}
	}
	if page != "" {
		page = "# OPTIONS\n" + page
	}
	return page
}

// settingsManual makes a manual of a configuration file that explains each of its settings in
// the comment above it. "## TITLE" begins a section.
func settingsManual(file string) string {
	setting := regexp.MustCompile(`^(# )?[a-z-]+ = `) // which may be commented out
	var sections []string
	items := []string{""}
	for block := range strings.SplitSeq(strings.TrimSpace(file), "\n\n") {
		var text, names []string
		for line := range strings.SplitSeq(block, "\n") {
			title, isTitle := strings.CutPrefix(line, "## ")
			switch {
			case isTitle:
				sections, items = append(sections, items...), []string{"### " + escapeMarkdown(title) + "\n"}
			case setting.MatchString(line):
				names = append(names, strings.TrimPrefix(line, "# "))
			default:
				text = append(text, strings.TrimPrefix(strings.TrimPrefix(line, "#"), " "))
			}
		}
		explained := strings.Join(text, "\n")
		if len(names) > 0 {
			items = append(items, manualItem(strings.Join(names, ", "), explained))
		} else { // what is about all of them comes before them
			items[0] += markdown(explained)
		}
	}
	return strings.Join(append(sections, items...), "")
}

// manualItem explains an option, a setting, ...
func manualItem(name, text string) string {
	return "**" + escapeMarkdown(name) + "**\n: " + escapeMarkdown(strings.Join(strings.Fields(text), " ")) + "\n\n"
}

// markdown makes Markdown of text: paragraphs with empty lines between them; indented lines
// stay as they are.
func markdown(text string) string {
	var b strings.Builder
	verbatim := false
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		indented := strings.HasPrefix(line, "  ")
		if indented != verbatim {
			b.WriteString("\n")
		}
		if verbatim = indented; indented {
			b.WriteString("  " + line + "\n")
		} else {
			b.WriteString(escapeMarkdown(line) + "\n")
		}
	}
	return b.String() + "\n"
}

// escapeMarkdown keeps what means something in Markdown as it is.
var escapeMarkdown = strings.NewReplacer(`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `<`, `\<`, `>`, `\>`, `[`, `\[`, `]`, `\]`, `#`, `\#`, `|`, `\|`, `~`, `\~`).Replace

// pageName returns what the page of a command is called.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// sentence returns what a command does.
func sentence(cmd *cobra.Command) string {
	if cmd.Long != "" {
		return cmd.Long
	}
	return strings.ToUpper(cmd.Short[:1]) + cmd.Short[1:] + "."
}
