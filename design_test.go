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

// step matches a step of a path in DESIGN.md or doc/internals, which consists of a file
// and a function or method.
var step = regexp.MustCompile("`(internal/[^`]+\\.go)`\\s+`(?:(\\w+)\\.)?(\\w+)`")

// The functions that DESIGN.md and doc/internals name exist.
func TestDesignSteps(t *testing.T) {
	pages, err := filepath.Glob("doc/internals/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "DESIGN.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		steps := step.FindAllStringSubmatch(string(text), -1)
		if len(steps) < 8 {
			t.Errorf("%s: found only %d steps", page, len(steps))
		}
		for _, s := range steps {
			f, err := parser.ParseFile(token.NewFileSet(), s[1], nil, parser.SkipObjectResolution)
			if err != nil {
				t.Errorf("%s: %s: %v", page, s[0], err)
				continue
			}
			if !declares(f, s[2], s[3]) {
				t.Errorf("%s: %s: function does not exist", page, s[0])
			}
		}
	}
}

// Every package has a package comment, which replaces a list of packages in DESIGN.md.
func TestPackageComments(t *testing.T) {
	for name := range arrows {
		files, err := filepath.Glob(name + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
			return err == nil && f.Doc != nil
		}) {
			t.Errorf("%s has no package comment", name)
		}
	}
}

// Each import in the diagram of DESIGN.md is an import that deps_test.go permits.
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
			if !slices.Contains(strings.Fields(arrows[folder(chain[i])]), folder(to)) {
				t.Errorf("%s does not import %s", folder(chain[i]), folder(to))
			}
		}
	}
	if drawn < 25 {
		t.Errorf("found only %d imports", drawn)
	}
}

// folder returns the folder of a package in the diagram.
func folder(name string) string {
	switch {
	case name == "cmd":
		return "cmd/beanpole"
	case name == "client", strings.HasPrefix(name, "client/"):
		return name
	}
	return "internal/" + name
}

// mentioned matches a path in the tree that a document mentions.
var mentioned = regexp.MustCompile("`((?:\\.ci|client|cmd|contrib|dist|doc|internal)/[\\w./-]+)`")

// Files that documents mention exist.
func TestMentionedFiles(t *testing.T) {
	var pages []string
	for _, glob := range []string{"*.md", "doc/*.md", "doc/decisions/*.md", "doc/internals/*.md"} {
		found, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	checked := 0
	for _, page := range pages {
		if page == "CHANGELOG.md" {
			continue // the changelog mentions removed files
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
