//go:build manual

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

// addManual adds the command that writes the manual pages. Only builds for packages have
// this command.
func addManual(root *cobra.Command) {
	root.AddCommand(&cobra.Command{
		Use:    "man DIR SETTINGS",
		Short:  "write the manual pages to a directory; SETTINGS is doc/configuration.md",
		Hidden: true,
		Args:   cliutil.Arguments("DIR SETTINGS"),
		RunE:   func(cmd *cobra.Command, args []string) error { return writeManual(cmd.Root(), args[0], args[1]) },
	})
}

// writeManual writes a page for each command to man1, and the page about the settings to
// man5.
func writeManual(root *cobra.Command, dir, settings string) error {
	page, err := os.ReadFile(settings)
	if err != nil {
		return err
	}
	for _, sub := range []string{"man1", "man5"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil { // #nosec G301 -- manuals are public
			return err
		}
	}
	for _, topic := range newTopics() {
		root.Long += "\n\n" + topic.Long + "\n\n  " + strings.ReplaceAll(topic.Flags().FlagUsages(), "\n", "\n  ")
	}
	escapeDescriptions(root)
	source := "beanpole " + versionOf(root)
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: source, Manual: "beanpole manual"}, filepath.Join(dir, "man1")); err != nil {
		return err
	}
	head := fmt.Sprintf("%% \"BEANPOLE.TOML\" \"5\" \"\" %q \"beanpole manual\"\n# NAME\nbeanpole.toml - settings of the beanpole server\n\n", source)
	roff := md2man.Render([]byte(head + definitions(string(page))))
	return os.WriteFile(filepath.Join(dir, "man5", "beanpole.toml.5"), roff, 0o644) // #nosec G306 -- the same
}

// definitions converts the tables of a page to definition lists, which fit on any
// terminal.
func definitions(page string) string {
	var b strings.Builder
	inTable := false
	for line := range strings.Lines(page) {
		isRow := strings.HasPrefix(line, "|")
		if !isRow {
			b.WriteString(line)
		} else if inTable && !strings.HasPrefix(line, "|--") { // neither the header nor the separator
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
			last := len(cells) - 1
			fmt.Fprintf(&b, "%s\n: %s\n\n", strings.Join(cells[:last], " = "), cells[last])
		}
		inTable = isRow
	}
	return b.String()
}

// escapeDescriptions converts the descriptions and options of a command and its
// subcommands to Markdown.
func escapeDescriptions(cmd *cobra.Command) {
	text := strings.TrimSpace(strings.Join([]string{paragraphs(cmd)[0], paragraphs(cmd)[1]}, "\n\n"))
	escape := strings.NewReplacer(`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `<`, `\<`, `>`, `\>`, `[`, `\[`, `]`, `\]`, `#`, `\#`).Replace
	var b strings.Builder
	verbatim := false
	for line := range strings.Lines(text) {
		indented := strings.HasPrefix(line, "  ")
		if indented != verbatim && strings.TrimSpace(line) != "" {
			b.WriteString("\n")
			verbatim = indented
		}
		if verbatim {
			b.WriteString("  " + line)
		} else {
			b.WriteString(escape(line))
		}
	}
	if usesServer(cmd) {
		b.WriteString("\n\nFor the connection options, see beanpole(1).")
	}
	cmd.InitDefaultHelpFlag()
	for _, group := range flagGroups(cmd) {
		b.WriteString("\n\n# " + strings.ToUpper(group.Title))
		for line := range strings.Lines(group.Usages) {
			option, usage, isFirst := strings.Cut(strings.TrimSpace(line), "   ")
			if isFirst {
				fmt.Fprintf(&b, "\n\n**%s**\n: %s", option, escape(strings.TrimSpace(usage)))
			} else { // the usage has several lines
				b.WriteString(" " + escape(option))
			}
		}
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = true }) // cobra prints values of pflag, such as []
	cmd.Long = b.String()
	cmd.DisableAutoGenTag = true
	for _, sub := range cmd.Commands() {
		escapeDescriptions(sub)
	}
}
