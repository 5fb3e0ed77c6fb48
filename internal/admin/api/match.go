package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
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

// searchIn reads a bodySearch from a query.
func searchIn(query url.Values) (s bodySearch) {
	for i, field := range []**string{&s.Text, &s.Regexp, &s.Pointer, &s.Equals} {
		if name := searchNames[i]; query.Has(name) {
			text := query.Get(name)
			*field = &text
		}
	}
	return s
}

// A bodyMatch tells whether a body is wanted. Nil: all are.
type bodyMatch func(body []byte) bool

// searchedBytes is how much of a body is looked at.
const searchedBytes = 1 << 20

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
			return nil, problemf(http.StatusBadRequest, "%s: want %d bytes at most", searchNames[i], longestSearch)
		}
		if field != s.Equals {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, problemf(http.StatusBadRequest, "want one of text, regexp and pointer")
	case s.Equals != nil && s.Pointer == nil:
		return nil, problemf(http.StatusBadRequest, "equals: want a pointer, too")
	case s.Text != nil:
		text := []byte(*s.Text)
		return func(body []byte) bool { return bytes.Contains(body, text) }, nil
	case s.Regexp != nil:
		re, err := regexp.Compile(*s.Regexp)
		if err != nil {
			return nil, problemf(http.StatusBadRequest, "regexp: %v; the syntax is RE2's", err)
		}
		return re.Match, nil
	case s.Pointer != nil:
		return pointerMatch(*s.Pointer, s.Equals)
	}
	return nil, nil
}

// pointerMatch returns what matches JSON that has a value at a pointer (RFC 6901), or a certain one.
func pointerMatch(pointer string, equals *string) (bodyMatch, error) {
	if pointer != "" && pointer[0] != '/' {
		return nil, problemf(http.StatusBadRequest, "pointer: want a JSON pointer, such as /user/id")
	}
	path := strings.Split(pointer, "/")[1:]
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for i := range path {
		path[i] = unescape.Replace(path[i])
	}
	return func(body []byte) bool {
		if !mayHave(body, path) {
			return false
		}
		value, ok := valueAt(body, path)
		return ok && (equals == nil || saysJSON(value, *equals))
	}, nil
}

// mayHave reports whether the names of a path are in a body, or may be there in another form. It
// saves reading most of those that have no such value.
func mayHave(body []byte, path []string) bool {
	if bytes.IndexByte(body, '\\') >= 0 {
		return true
	}
	for _, name := range path {
		if _, err := strconv.Atoi(name); err != nil && !bytes.Contains(body, []byte(name)) {
			return false
		}
	}
	return true
}

// valueAt returns the value at a path in JSON.
func valueAt(text json.RawMessage, path []string) (value json.RawMessage, ok bool) {
	for _, name := range path {
		text = bytes.TrimSpace(text)
		switch {
		case len(text) > 0 && text[0] == '{':
			var members map[string]json.RawMessage
			if json.Unmarshal(text, &members) != nil {
				return nil, false
			}
			if text, ok = members[name]; !ok {
				return nil, false
			}
		case len(text) > 0 && text[0] == '[':
			var list []json.RawMessage
			if json.Unmarshal(text, &list) != nil {
				return nil, false
			}
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(list) || strconv.Itoa(i) != name {
				return nil, false
			}
			text = list[i]
		default:
			return nil, false
		}
	}
	return bytes.TrimSpace(text), len(path) > 0 || json.Valid(text)
}

// saysJSON reports whether a value is a string with a text, or is written as the text.
func saysJSON(value json.RawMessage, text string) bool {
	if len(value) > 0 && value[0] == '"' {
		var s string
		return json.Unmarshal(value, &s) == nil && s == text
	}
	var short bytes.Buffer
	return json.Compact(&short, value) == nil && short.String() == text
}
