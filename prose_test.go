package beanpole_test

import (
	"bytes"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// translated matches constructions that mark translated text. CONTRIBUTING.md has the
// rules that replace them.
var translated = regexp.MustCompile(`(?i)\bwhat(ever)? (is|are|was|were|has|have|there|it|the|a|an|may|can|must|comes|came|waits|clients|others|they|somebody|nobody)\b` +
	`|\b(that|those) of\b|\bof which\b|\b(is|are) how (many|long|much|far|often|old)\b|\b(say|says|said|tell|tells|told|knows?) (of|what|that|who|how|whether)\b` +
	`|\b(nobody|somebody|whoever|meanwhile|anew)\b|\bany more\b|; (nil|0|empty|none): `)

// These are the budgets for comments and strings. If the test logs lower figures, lower
// the budgets.
const (
	maxPatterns = 5  // in 1,000 lines of comments
	maxMessages = 13 // strings with such a construction, without tests
	maxLong     = 80 // lines of comments over 90 columns
)

// pages contains the patterns of the documentation. bench/results is missing because its
// tables are generated.
var pages = []string{"*.md", "doc/*.md", "doc/decisions/*.md", "doc/internals/*.md", "internal/test/conformance/*.md"}

// The comments and strings of the code stay within the budgets.
func TestProseOfCode(t *testing.T) {
	comments, patterns, messages, long := 0, 0, 0, 0
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (name != "." && name[0] == '.' || d.Name() == "testdata" || name == "build") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(name, ".go") {
			return err
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var s scanner.Scanner
		file := token.NewFileSet().AddFile(name, -1, len(src))
		s.Init(file, src, nil, scanner.ScanComments)
		for {
			pos, tok, lit := s.Scan()
			switch tok {
			case token.EOF:
				return nil
			case token.STRING:
				if !strings.HasSuffix(name, "_test.go") && strings.Contains(lit, " ") && translated.MatchString(lit) {
					messages++
				}
			case token.COMMENT:
				before := src[:file.Offset(pos)]
				indent := before[bytes.LastIndexByte(before, '\n')+1:]
				if len(bytes.TrimSpace(indent)) > 0 {
					continue // code precedes the comment
				}
				comments++
				if translated.MatchString(lit) {
					patterns++
				}
				if len(indent)+utf8.RuneCountInString(lit) > 90 && !strings.HasPrefix(lit, "//go:") {
					long++
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	per := patterns * 1000 / comments
	t.Logf("comments: %d per 1,000 lines; strings: %d; long lines: %d", per, messages, long)
	if per > maxPatterns || messages > maxMessages || long > maxLong {
		t.Errorf("over budget (%d, %d, %d); see CONTRIBUTING.md, How we write", maxPatterns, maxMessages, maxLong)
	}
}

var (
	markdownCode = regexp.MustCompile("`[^`]*`")
	markdownLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	sentenceEnd  = regexp.MustCompile(`[.!?:]["')*_]*\s+`)
	block        = regexp.MustCompile(`^\s*([-*|#<]|\d+\. |$)`) // the start of a paragraph, an item, a row
)

// Pages contain no construction that translated matches, no long sentence and no long
// line.
func TestProseOfPages(t *testing.T) {
	for _, glob := range pages {
		names, err := filepath.Glob(glob)
		if err != nil || len(names) == 0 {
			t.Fatalf("no page %s: %v", glob, err)
		}
		for _, page := range names {
			text, err := os.ReadFile(page)
			if found := faults(string(text)); err != nil || len(found) > 0 {
				t.Errorf("%s: %v %q", page, err, found)
			}
		}
	}
}

// faults returns the violations of the rules in a page.
func faults(page string) (found []string) {
	paragraph := ""
	finish := func() {
		text := markdownLink.ReplaceAllString(markdownCode.ReplaceAllString(paragraph, "x"), "$1")
		for _, m := range translated.FindAllString(text, -1) {
			found = append(found, "translated: "+m)
		}
		for _, sentence := range sentenceEnd.Split(text, -1) {
			if n := len(strings.Fields(sentence)); n > 35 {
				found = append(found, "a sentence of more than 35 words: "+sentence)
			}
		}
		paragraph = ""
	}
	for line := range strings.SplitSeq(fence.ReplaceAllString(page, ""), "\n") {
		if utf8.RuneCountInString(line) > 100 && line[0] != '|' && !strings.Contains(line, "](") {
			found = append(found, "a line of more than 100 columns: "+line)
		}
		if block.MatchString(line) {
			finish()
		}
		if !strings.HasPrefix(line, "    ") || paragraph != "" { // not a code block
			paragraph += strings.ReplaceAll(line, " |", ". ") + " "
		}
	}
	finish()
	return found
}

// faults finds each kind of fault, and nothing in good text.
func TestFaults(t *testing.T) {
	for text, want := range map[string]int{
		"The server reports an error.\n- One item. `what is`\n": 0, "Nobody\nknows how.": 2, "    what is code": 0,
		strings.Repeat("word\n", 36): 1, strings.Repeat("ab. ", 30): 1, "| " + strings.Repeat("one two. ", 30) + " |": 0,
	} {
		if got := faults(text); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
}
