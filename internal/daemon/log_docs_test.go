package daemon

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each warning and each error that a server logs is in the table of doc/operations.md, or in
// doc/cluster.md, by how it begins.
func TestLogIsDocumented(t *testing.T) {
	var told []*regexp.Regexp
	for _, page := range []string{"operations.md", "cluster.md"} {
		text, err := os.ReadFile(filepath.Join("../../doc", page))
		if err != nil {
			t.Fatal(err)
		}
		for row := range strings.Lines(string(text)) {
			level, rest, _ := strings.Cut(row, " `")
			if level != "| WARN" && level != "| ERROR" {
				continue
			}
			cell, _, _ := strings.Cut(rest, " |")
			for _, begins := range strings.Split(strings.TrimSuffix(cell, "`"), "`, `") {
				told = append(told, regexp.MustCompile("^"+strings.ReplaceAll(regexp.QuoteMeta(begins), `\.\.\.`, ".*")))
			}
		}
	}
	line := regexp.MustCompile(`\.(?:Warn|Error)\("([^"]{10,})"`)
	lines := 0
	for _, dir := range []string{".", "../config", "../server", "../certs", "../journal"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, found := range line.FindAllStringSubmatch(string(code), -1) {
				lines++
				if !slices.ContainsFunc(told, func(text *regexp.Regexp) bool { return text.MatchString(found[1]) }) {
					t.Errorf("%s: no page tells of %q", file, found[1])
				}
			}
		}
	}
	if lines < 40 {
		t.Errorf("the code logs %d warnings and errors: are these all?", lines)
	}
}
