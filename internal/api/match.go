package api

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/beanpole-mq/beanpole/internal/jsonscan"
)

// A bodyMatch reports whether a body matches. A nil bodyMatch matches every body.
type bodyMatch func(body []byte, rd *reading) bool

const (
	// searchedBytes is the length of the part of a body that is searched.
	searchedBytes = 1 << 20

	// largestProgram is the maximum number of instructions of all regular expressions of
	// a query. Each instruction can run at each byte.
	largestProgram = 200

	// stepsPerBody is the maximum product of instructions and bytes for a regular
	// expression and a body: about a quarter of a second. A larger body does not match,
	// because its prefix could match even if the whole body does not.
	stepsPerBody = 1 << 24

	// stepsAtOnce is the maximum product of instructions and bytes that a regular
	// expression can use without a pause: a few milliseconds.
	stepsAtOnce = 1 << 18
)

// regexpMatch returns the match of a regular expression. It adds the number of its
// instructions to *sum.
func regexpMatch(text string, sum *int) (bodyMatch, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, badRequest("regexp: %v; the syntax is RE2's", err)
	}
	parsed, _ := syntax.Parse(text, syntax.Perl)
	program, _ := syntax.Compile(parsed.Simplify())
	size := len(program.Inst)
	if *sum += size; *sum > largestProgram {
		return nil, badRequest("regexp: the query has %d instructions in regular expressions; want %d or fewer: use fewer repetitions", *sum, largestProgram)
	}
	prefix, isAll := re.LiteralPrefix()
	return func(body []byte, rd *reading) bool {
		switch {
		case !bytes.Contains(body, []byte(prefix)), !isAll && size*len(body) > stepsPerBody:
			return false
		case isAll, size*len(body) <= stepsAtOnce:
			return re.Match(body)
		}
		return re.MatchReader(&runes{body: body, reading: rd})
	}, nil
}

// A runes reads a body that takes long to match. It ends early if the client disconnects.
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

// isPlain reports whether JSON can spell a text only literally or with \u escapes.
func isPlain(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:@") == ""
}

func isIndex(name string) bool {
	i, err := strconv.Atoi(name)
	return err == nil && i >= 0 && strconv.Itoa(i) == name
}

// mayHave reports whether a body can contain all texts, literally or in another form.
// With it, most bodies that do not match need not be decoded.
func mayHave(body []byte, texts []string) bool {
	for _, text := range texts {
		if !bytes.Contains(body, []byte(text)) {
			return bytes.Contains(body, []byte(`\u`))
		}
	}
	return true
}

// valueAt returns the value at a path in valid JSON. If members have the same name, it
// uses the last, like most parsers.
func valueAt(text json.RawMessage, path []string) (value json.RawMessage, ok bool) {
	text = bytes.TrimSpace(text)
	for _, name := range path {
		if text[0] != '{' && !(text[0] == '[' && isIndex(name)) {
			return nil, false
		}
		var found json.RawMessage
		i := 0
		for key, value := range jsonscan.Members(text) {
			if key != nil && saysJSON(key, name) || key == nil && strconv.Itoa(i) == name {
				found = value
			}
			i++
		}
		if found == nil {
			return nil, false
		}
		text = found
	}
	return text, true
}

// saysJSON reports whether a value is a string with the given text, or is spelled like
// the text.
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
