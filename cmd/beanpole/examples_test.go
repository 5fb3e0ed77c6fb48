package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// An example is a command after a $, and its output, in a console block of a page. The
// character … matches any text.
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

// scriptExamples runs the examples of a page against the admin API of a server, instead
// of localhost:11380.
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
		want = ages.ReplaceAllString(want, `"$1":[0-9]+`)
		if !regexp.MustCompile("^" + want + "$").Match([]byte(strings.TrimSpace(string(got)))) {
			ts.Fatalf("%s%s\nwant\n%s", x.command, got, x.output)
		}
	}
}

// ages matches ages of jobs in examples: 0 on the page, higher on a busy machine.
var ages = regexp.MustCompile(`"(age|oldest_ready)":0`)

// recipe is a command in the text of a page.
var recipe = regexp.MustCompile("`((?:beanpole|curl) [^`]+)`|(?m)^((?:beanpole|curl) .*)$")

// notRun matches recipes that need a terminal, run until a signal, or need another
// server.
var notRun = regexp.MustCompile(`^beanpole (top$|work |-b )|/etc/beanpole`)

// scriptRecipes runs the commands in a chapter of a page with the test's server and
// journal. Each must succeed.
func scriptRecipes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: recipes NAME JOURNAL FILE CHAPTER")
	}
	page, err := os.ReadFile(ts.MkAbs(args[2]))
	ts.Check(err)
	_, chapter, ok := strings.Cut(string(page), "\n## "+args[3])
	if !ok {
		ts.Fatalf("%s has no chapter %s", args[2], args[3])
	}
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	admin := adminOf(ts, args[0])
	real := strings.NewReplacer("ADMIN", admin, "connections ID", "connections --yes $(beanpole connections --json | jq .id | head -n 1)", "TUBE", "mail", "OTHER", "aside", "ID", "1",
		"/var/lib/beanpole", ts.MkAbs(args[1]), `\|`, "|", "curl -", "curl -f", "beanpole clear", "beanpole clear --yes")
	n := 0
	for _, m := range recipe.FindAllStringSubmatch(chapter, -1) {
		command := m[1] + m[2]
		if notRun.MatchString(command) {
			continue
		}
		n++
		cmd := exec.Command("bash", "-o", "pipefail", "-c", real.Replace(command))
		cmd.Env = append(os.Environ(), "BEANPOLE_ADDR="+ts.Getenv(args[0]+"_addr"), "BEANPOLE_ADMIN_ADDR="+admin)
		out, err := cmd.CombinedOutput()
		ts.Logf("%s\n%s", command, out)
		if err != nil {
			ts.Fatalf("%s: %v", command, err)
		}
	}
	if n == 0 {
		ts.Fatalf("chapter %s has no commands", args[3])
	}
}
