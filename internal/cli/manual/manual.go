// Package manual writes pages for man(1), in the macros of man(7).
package manual

import (
	"fmt"
	"io"
	"strings"
)

// A Page is a page of the manual.
type Page struct {
	Name     string // of a command or a file
	Section  int    // of the manual
	Short    string // what it is, for whatis(1)
	Version  string
	Synopsis []string
	Sections []Section
}

// FileName returns what the file of the page is called.
func (p *Page) FileName() string { return fmt.Sprintf("%s.%d", p.Name, p.Section) }

// A Section is a part of a page. A title in capitals begins a section, another one a part of that.
type Section struct {
	Title string
	Text  string // paragraphs, with empty lines between them; indented lines stay as they are
	Items []Item
}

// An Item explains an option, a setting, a signal, ...
type Item struct{ Name, Text string }

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH \"%s\" %d \"\" \"%s\" \"beanpole manual\"\n", escape(strings.ToUpper(p.Name)), p.Section, escape("beanpole "+p.Version))
	b.WriteString(".nh\n.ad l\n")
	writeTitle(&b, "NAME")
	fmt.Fprintf(&b, "%s \\- %s\n", escape(p.Name), escape(p.Short))
	if len(p.Synopsis) > 0 {
		writeTitle(&b, "SYNOPSIS")
		writeVerbatim(&b, p.Synopsis)
	}
	for _, s := range p.Sections {
		writeTitle(&b, s.Title)
		writeText(&b, s.Text)
		for _, i := range s.Items {
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n", escape(i.Name))
			writeText(&b, i.Text)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeTitle(b *strings.Builder, title string) {
	macro := ".SS"
	if title == strings.ToUpper(title) {
		macro = ".SH"
	}
	fmt.Fprintf(b, "%s %s\n", macro, escape(title))
}

// writeText writes paragraphs. The first one begins where the page is.
func writeText(b *strings.Builder, text string) {
	for i, paragraph := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if i > 0 {
			b.WriteString(".sp\n")
		}
		lines := strings.Split(paragraph, "\n")
		for len(lines) > 0 {
			n := 0
			for n < len(lines) && strings.HasPrefix(lines[n], "  ") {
				n++
			}
			if n > 0 {
				writeVerbatim(b, lines[:n])
				lines = lines[n:]
				continue
			}
			if lines[0] != "" {
				fmt.Fprintln(b, escape(lines[0]))
			}
			lines = lines[1:]
		}
	}
}

// writeVerbatim writes lines that are not filled.
func writeVerbatim(b *strings.Builder, lines []string) {
	b.WriteString(".nf\n")
	for _, line := range lines {
		fmt.Fprintln(b, escape(line))
	}
	b.WriteString(".fi\n")
}

// escape keeps what is a command of roff, or would look different, as it is.
func escape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `'`, `\(aq`, "`", "\\(ga", `^`, `\(ha`, `~`, `\(ti`, `"`, `\(dq`).Replace(s)
	if strings.HasPrefix(s, ".") {
		return `\&` + s
	}
	return s
}
