package beanpole_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// stop is a step of a way in DESIGN.md: a file and a function or method.
var stop = regexp.MustCompile("(?m)^[0-9]+\\. `(internal/[^`]+\\.go)` `(?:(\\w+)\\.)?(\\w+)`")

// The stops of the ways that DESIGN.md draws exist.
func TestDesignStops(t *testing.T) {
	text, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	stops := stop.FindAllStringSubmatch(string(text), -1)
	if len(stops) < 60 {
		t.Fatalf("only %d stops were found", len(stops))
	}
	for _, s := range stops {
		f, err := parser.ParseFile(token.NewFileSet(), s[1], nil, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%s: %v", s[0], err)
			continue
		}
		if !declares(f, s[2], s[3]) {
			t.Errorf("%s: there is no such function", s[0])
		}
	}
}

// DESIGN.md names each room, and no other except those to come.
func TestDesignRooms(t *testing.T) {
	text, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "\ninternal/\n")
	list, _, _ = strings.Cut(list, "```")
	entries, err := os.ReadDir("internal")
	if err != nil {
		t.Fatal(err)
	}
	var rooms, named []string
	for _, e := range entries {
		rooms = append(rooms, e.Name())
	}
	for _, m := range regexp.MustCompile(`(?m)^  (\w+)/ +(.*)$`).FindAllStringSubmatch(list, -1) {
		if !strings.HasSuffix(m[2], "(later)") || slices.Contains(rooms, m[1]) {
			named = append(named, m[1])
		}
	}
	slices.Sort(named)
	if !slices.Equal(named, rooms) {
		t.Errorf("DESIGN.md has the rooms\n%v, the folder has\n%v", named, rooms)
	}
}

// The arrows of the picture of the rooms are those of packages.
func TestDesignPicture(t *testing.T) {
	text, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	_, picture, _ := strings.Cut(string(text), "```mermaid\nflowchart TD\n")
	picture, _, _ = strings.Cut(picture, "```")
	drawn := 0
	for line := range strings.Lines(picture) {
		chain := strings.Split(strings.TrimSpace(line), " --> ")
		for i, to := range chain[1:] {
			drawn++
			if !slices.Contains(strings.Fields(arrows[room(chain[i])]), room(to)) {
				t.Errorf("%s does not import %s", room(chain[i]), room(to))
			}
		}
	}
	if drawn < 30 {
		t.Errorf("only %d arrows are drawn", drawn)
	}
}

// room returns the package that a name in the picture stands for.
func room(name string) string {
	switch {
	case name == "cmd":
		return "cmd/beanpole"
	case name == "client", strings.HasPrefix(name, "client/"):
		return name
	}
	return "internal/" + name
}

// mentioned is a file or folder of ours in a document.
var mentioned = regexp.MustCompile("`((?:\\.ci|client|cmd|contrib|dist|doc|internal)/[\\w./-]+)`")

// The files that documents mention exist.
func TestMentionedFiles(t *testing.T) {
	var pages []string
	for _, glob := range []string{"*.md", "doc/*.md", "doc/decisions/*.md"} {
		found, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	checked := 0
	for _, page := range pages {
		if page == "CHANGELOG.md" {
			continue // speaks of what was
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mentioned.FindAllStringSubmatch(string(text), -1) {
			checked++
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s mentions %s: %v", page, m[1], err)
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d files are mentioned", checked)
	}
}

// declares reports whether a file has a function, or a method of a type.
func declares(f *ast.File, receiver, name string) bool {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name != name || (fn.Recv == nil) != (receiver == "") {
			continue
		}
		if fn.Recv == nil {
			return true
		}
		typ := fn.Recv.List[0].Type
		if star, ok := typ.(*ast.StarExpr); ok {
			typ = star.X
		}
		if id, ok := typ.(*ast.Ident); ok && id.Name == receiver {
			return true
		}
	}
	return false
}
