package daemon

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// logged matches the message of a warning or error in the code.
var logged = regexp.MustCompile(`(?:\.(?:Warn|Error)|foreign|context\.Background\(\), level,)(?:\(| )"([^"]{10,})"` +
	`|what :?= "(a(?:nother)? member [^"]+)"|Sprintf\("((?:the certificate|the token) [^"]+)"` + // logged by another function
	`|\{"[^"]+", "([^"]+; [^"]+)", "([^"]+)"\}`) // the table in journal/health.go

// doc/log-messages.md lists each warning and error of the server by its first words, and
// lists no message that the code lacks.
func TestLogIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../doc/log-messages.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[*regexp.Regexp]bool{} // maps a message to whether the code contains it
	for _, row := range regexp.MustCompile("(?m)^\\| [A-Z]+ `(.*?)` \\|").FindAllStringSubmatch(string(page), -1) {
		for begins := range strings.SplitSeq(row[1], "`, `") {
			listed[regexp.MustCompile("^"+strings.ReplaceAll(regexp.QuoteMeta(begins), `\.\.\.`, ".*"))] = false
		}
	}
	var code strings.Builder
	found := 0
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "test" || d.Name() == "cli") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		code.Write(text)
		for _, m := range logged.FindAllStringSubmatch(string(text), -1) {
			message := strings.Join(m[1:5], "") // exactly one group matches
			known := false
			found++
			for begins := range listed {
				known = known || begins.MatchString(message)
			}
			if !known {
				t.Errorf("%s: no row for %q", path, message)
			}
		}
		return err
	})
	if err != nil || found < 70 {
		t.Fatalf("the code logs %d warnings and errors (%v): the pattern misses some", found, err)
	}
	for _, literal := range regexp.MustCompile(`"[^"\n]+"`).FindAllString(code.String(), -1) {
		for begins, ok := range listed {
			listed[begins] = ok || begins.MatchString(literal[1:len(literal)-1])
		}
	}
	for begins, ok := range listed {
		if !ok {
			t.Errorf("no message starts with %s", begins)
		}
	}
}
