package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/op/jsonscan"
)

// maxKeyed is how many bytes a body has at most in which values are looked for: more would take a turn too long.
const maxKeyed = 64 << 10

// keyOf returns the key that the setting unique says; nil: none.
func keyOf(text string) (*engine.Key, error) {
	switch text {
	case "no", "false":
		return nil, nil
	case "body":
		return &engine.Key{Name: text, Of: func(_ *[]byte, body []byte) ([]byte, bool) { return body, true }}, nil
	case "line":
		return &engine.Key{Name: text, Of: func(_ *[]byte, body []byte) ([]byte, bool) {
			line, _, _ := bytes.Cut(body, []byte{'\n'})
			return bytes.TrimSuffix(line, []byte{'\r'}), true
		}}, nil
	}
	var all []pointer
	for part := range strings.SplitSeq(text, ",") {
		p, err := newPointer(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return &engine.Key{Name: text, Of: func(buf *[]byte, body []byte) ([]byte, bool) {
		if len(body) > maxKeyed || !json.Valid(body) { // which no depth troubles
			return nil, false
		}
		key := (*buf)[:0]
		for _, p := range all {
			v, ok := p.of(body)
			if !ok {
				return nil, false
			}
			key = append(append(key, v...), 0) // no JSON has this byte
		}
		*buf = key
		return key, true
	}}, nil
}

// A pointer is a JSON pointer (RFC 6901): names of members, or numbers of elements.
type pointer []string

func newPointer(text string) (pointer, error) {
	names := strings.Split(text, "/")
	if names[0] != "" || len(names) < 2 {
		return nil, fmt.Errorf("%q is no JSON pointer", text)
	}
	if strings.Count(text, "~") != strings.Count(text, "~0")+strings.Count(text, "~1") {
		return nil, fmt.Errorf("%q is no JSON pointer: ~ is written ~0", text)
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for i, name := range names {
		names[i] = unescape.Replace(name)
	}
	return names[1:], nil
}

// of returns the value in a text, which is JSON, as it is written there.
func (p pointer) of(text json.RawMessage) (json.RawMessage, bool) {
	for _, name := range p {
		if text = bytes.TrimSpace(text); text[0] != '{' && text[0] != '[' {
			return nil, false
		}
		var found json.RawMessage
		n := 0
		for member, value := range jsonscan.Members(text) {
			switch {
			case member == nil && name == strconv.Itoa(n), member != nil && isNamed(member, name):
				found = value // of two members of a name the second one counts, as for most who read JSON
			}
			n++
		}
		if found == nil {
			return nil, false
		}
		text = found
	}
	return text, true
}

// isNamed reports whether the name of a member, as it is written, is that one.
func isNamed(written json.RawMessage, name string) bool {
	if bytes.IndexByte(written, '\\') < 0 {
		return string(written[1:len(written)-1]) == name
	}
	var read string
	return json.Unmarshal(written, &read) == nil && read == name
}
