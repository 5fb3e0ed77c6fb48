package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// classes matches the names of the classes in the style sheet.
var classes = regexp.MustCompile(`\.([a-z]+)\{`)

// Each chart of the saved results is valid XML with only known classes and a text
// alternative that contains the figures. It contains no code and no reference to another
// host.
func TestCharts(t *testing.T) {
	dir := t.TempDir()
	if err := run("../results", dir); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range classes.FindAllStringSubmatch(svg, -1) {
		known[m[1]] = true
	}
	for _, p := range plots {
		text, err := os.ReadFile(filepath.Join(dir, p.name+".svg"))
		if err != nil {
			t.Error(err)
			continue
		}
		var elements []string
		for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", p.name, err)
			}
			e, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			elements = append(elements, e.Name.Local)
			for _, a := range e.Attr {
				for _, class := range strings.Fields(a.Value) {
					if a.Name.Local == "class" && !known[class] {
						t.Errorf("%s: the style sheet has no class %s", p.name, class)
					}
				}
			}
		}
		if got := strings.Join(elements[:4], " "); got != "svg title desc style" {
			t.Errorf("%s starts with %s", p.name, got)
		}
		for _, e := range elements {
			if !strings.Contains(" svg title desc style text tspan rect path ", " "+e+" ") {
				t.Errorf("%s has an element %s", p.name, e)
			}
		}
		if size := len(text); size > 20<<10 {
			t.Errorf("%s: %d bytes", p.name, size)
		}
	}
}
