package policy

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// maxKeyed is the maximum size in bytes of a body in which values are searched. A search
// in a larger body would take too long for a turn.
const maxKeyed = 64 << 10

// keyOf returns the key of the setting unique, or nil if there is none.
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
	tree := new(step)
	pointers := strings.Split(text, ",")
	for n := range pointers {
		pointers[n] = strings.TrimSpace(pointers[n])
		if slices.Contains(pointers[:n], pointers[n]) {
			return nil, fmt.Errorf("%q is listed twice", pointers[n])
		}
		if err := tree.add(pointers[n], n); err != nil {
			return nil, err
		}
	}
	count := len(pointers)
	return &engine.Key{Name: text, Of: func(buf *[]byte, body []byte) ([]byte, bool) {
		if len(body) > maxKeyed {
			return nil, false
		}
		var few [4][]byte // these need no heap memory
		values := append(few[:0], make([][]byte, count)...)
		tree.find(bytes.TrimSpace(body), values)
		key := (*buf)[:0]
		for _, v := range values {
			if v == nil {
				return nil, false
			}
			key = append(append(key, v...), 0) // terminates a number; the ends of other values are unambiguous
		}
		*buf = key
		return key, true
	}}, nil
}
