package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var testName = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// Each part names an existing test, because go test succeeds if no test matches -run.
func TestPartsExist(t *testing.T) {
	for _, p := range slices.Concat(once, long) {
		v := slices.Index(p.command, "-v")
		if v < 0 {
			continue
		}
		run, _, _ := strings.Cut(strings.TrimPrefix(p.command[v+2], "-run="), "/")
		wanted := regexp.MustCompile(run)
		if !slices.ContainsFunc(testsIn(t, filepath.Join("../../..", p.command[v+1])), wanted.MatchString) {
			t.Errorf("%s: no test matches %s", p, run)
		}
	}
}

func testsIn(t *testing.T, dir string) (names []string) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testName.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}
