package beanpole_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
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
	if len(stops) < 30 {
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
