package api

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/beanpole-mq/beanpole/internal/op/jsonscan"
)

// A bodySearch says which bodies are wanted, as a query or a task has it. At most one of Text,
// Regexp and Pointer is there.
type bodySearch struct {
	Text    *string
	Regexp  *string
	Pointer *string
	Equals  *string // what the value at Pointer must be; nil: any
}

// searchNames are the parameters of a bodySearch.
var searchNames = []string{"text", "regexp", "pointer", "equals"}

// A bodyMatch tells whether a body is wanted. Nil: all are.
type bodyMatch func(body []byte, rd *reading) bool

const (
	// searchedBytes is how much of a body is looked at.
	searchedBytes = 1 << 20

	// largestProgram is how many instructions a regular expression may have when it is compiled. Each may have to be
	// tried at each byte.
	largestProgram = 200

	// stepsAtOnce is how many instructions, times bytes, a regular expression may try without a rest: a
	// few milliseconds.
	stepsAtOnce = 1 << 18
)

// longestSearch is how long a text, a regular expression or a pointer may be, in bytes.
const longestSearch = 1 << 10

// match returns what tells whether a body is wanted.
func (s *bodySearch) match() (bodyMatch, error) {
	given := 0
	for i, field := range []*string{s.Text, s.Regexp, s.Pointer, s.Equals} {
		if field == nil {
			continue
		}
		if len(*field) > longestSearch {
			return nil, badRequest("%s: want %d bytes at most", searchNames[i], longestSearch)
		}
		if field != s.Equals {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, badRequest("want one of text, regexp and pointer")
	case s.Equals != nil && s.Pointer == nil:
		return nil, badRequest("equals: want a pointer, too")
	case s.Text != nil:
		text := []byte(*s.Text)
		return func(body []byte, _ *reading) bool { return bytes.Contains(body, text) }, nil
	case s.Regexp != nil:
		return regexpMatch(*s.Regexp)
	case s.Pointer != nil:
		return pointerMatch(*s.Pointer, s.Equals)
	}
	return nil, nil
}

// regexpMatch returns what matches bodies in which a regular expression does.
func regexpMatch(text string) (bodyMatch, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, badRequest("regexp: %v; the syntax is RE2's", err)
	}
	parsed, _ := syntax.Parse(text, syntax.Perl)
	program, _ := syntax.Compile(parsed.Simplify())
	size := len(program.Inst)
	if size > largestProgram {
		return nil, badRequest("regexp: it is too large: %d instructions, where %d are the most; repeat less", size, largestProgram)
	}
	prefix, isAll := re.LiteralPrefix()
	return func(body []byte, rd *reading) bool {
		switch {
		case !bytes.Contains(body, []byte(prefix)):
			return false
		case isAll, size*len(body) <= stepsAtOnce:
			return re.Match(body)
		}
		return re.MatchReader(&runes{body: body, reading: rd})
	}, nil
}

// runes are those of a body that takes long to match. They end early when the client has gone.
type runes struct {
	body []byte
	read int
	*reading
}

// ReadRune implements io.RuneReader.
func (s *runes) ReadRune() (r rune, size int, err error) {
	if s.read++; len(s.body) == 0 || s.read%(stepsAtOnce/largestProgram) == 0 && !s.goOn() {
		return 0, 0, io.EOF
	}
	r, size = utf8.DecodeRune(s.body)
	s.body = s.body[size:]
	return r, size, nil
}

// pointerMatch returns what matches JSON that has a value at a pointer (RFC 6901), or a certain one.
func pointerMatch(pointer string, equals *string) (bodyMatch, error) {
	path, err := pathOf(pointer)
	if err != nil {
		return nil, err
	}
	must := slices.DeleteFunc(slices.Clone(path), func(name string) bool { return !isPlain(name) || isIndex(name) })
	if equals != nil && isPlain(*equals) {
		must = append(must, *equals)
	}
	return func(body []byte, _ *reading) bool {
		if !mayHave(body, must) || !json.Valid(body) {
			return false
		}
		value, ok := valueAt(body, path)
		return ok && (equals == nil || saysJSON(value, *equals))
	}, nil
}

// isPlain reports whether a text can be written in JSON in one other way only: with \u.
func isPlain(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:@") == ""
}

func isIndex(name string) bool {
	i, err := strconv.Atoi(name)
	return err == nil && i >= 0 && strconv.Itoa(i) == name
}

// mayHave reports whether texts are in a body, or may be there in another form. It saves reading most of
// those that have no such value.
func mayHave(body []byte, texts []string) bool {
	for _, text := range texts {
		if !bytes.Contains(body, []byte(text)) {
			return bytes.Contains(body, []byte(`\u`))
		}
	}
	return true
}

// valueAt returns the value at a path in valid JSON. Of members with the same name it takes the last, as
// most readers do.
func valueAt(text json.RawMessage, path []string) (value json.RawMessage, ok bool) {
	text = bytes.TrimSpace(text)
	for _, name := range path {
		var found json.RawMessage
		switch {
		case text[0] == '{':
			for key, value := range jsonscan.Members(text) {
				if saysJSON(key, name) {
					found = value
				}
			}
		case text[0] == '[' && isIndex(name):
			i := 0
			for _, value := range jsonscan.Members(text) {
				if strconv.Itoa(i) == name {
					found = value
				}
				i++
			}
		}
		if found == nil {
			return nil, false
		}
		text = found
	}
	return text, true
}

// saysJSON reports whether a value is a string with a text, or is written as the text.
func saysJSON(value json.RawMessage, text string) bool {
	if len(value) > 0 && value[0] == '"' {
		if plain := value[1 : len(value)-1]; bytes.IndexByte(plain, '\\') < 0 {
			return string(plain) == text
		}
		var s string
		return json.Unmarshal(value, &s) == nil && s == text
	}
	var short bytes.Buffer
	return json.Compact(&short, value) == nil && short.String() == text
}
