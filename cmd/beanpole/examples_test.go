package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// An example of a page is a command behind a $ and what it prints, in a block of the
// kind console. … stands for anything.
type example struct{ command, output string }

func examplesOf(page string) (all []example) {
	for i, block := range strings.Split(page, "```") {
		lines, ok := strings.CutPrefix(block, "console\n")
		if i%2 == 0 || !ok {
			continue
		}
		for line := range strings.Lines(lines) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				all = append(all, example{command: command})
			} else {
				all[len(all)-1].output += line
			}
		}
	}
	return all
}

// scriptExamples runs the examples of a page, with the admin pages of a server in the
// place of those at localhost:11380.
func scriptExamples(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: examples NAME FILE")
	}
	admin := adminOf(ts, args[0])
	page, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	all := examplesOf(string(page))
	if len(all) == 0 {
		ts.Fatalf("%s has no examples", args[1])
	}
	for _, x := range all {
		got, err := exec.Command("sh", "-c", strings.ReplaceAll(x.command, "localhost:11380", admin)).CombinedOutput()
		if err != nil {
			ts.Fatalf("%s%v\n%s", x.command, err, got)
		}
		want := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(x.output)), "…", "(?s:.*)")
		if !regexp.MustCompile("^" + want + "$").Match([]byte(strings.TrimSpace(string(got)))) {
			ts.Fatalf("%s%s\nwant\n%s", x.command, got, x.output)
		}
	}
}
