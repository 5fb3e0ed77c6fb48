package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/jsonscan"
)

// A step is a node of the tree that the JSON pointers (RFC 6901) of a key form. Its
// children are the members and elements with which pointers continue.
type step struct {
	ends     []int            // numbers of the pointers that end at this node
	children map[string]*step // by name, or by the decimal index of an element
}

// add adds a pointer with its number to the tree that starts at s.
func (s *step) add(pointer string, number int) error {
	names := strings.Split(pointer, "/")
	if names[0] != "" || len(names) < 2 {
		return fmt.Errorf("%q is not a JSON pointer; it must start with /", pointer)
	}
	if strings.Count(pointer, "~") != strings.Count(pointer, "~0")+strings.Count(pointer, "~1") {
		return fmt.Errorf("%q is not a valid JSON pointer: write ~ as ~0", pointer)
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, name := range names[1:] {
		name = unescape.Replace(name)
		next := s.children[name]
		if next == nil {
			next = new(step)
			if s.children == nil {
				s.children = make(map[string]*step)
			}
			s.children[name] = next
		}
		s = next
	}
	s.ends = append(s.ends, number)
	return nil
}

// find stores the values of the pointers below s in values. If an object repeats a name,
// the first member counts.
func (s *step) find(text []byte, values [][]byte) {
	for _, number := range s.ends {
		if values[number] == nil {
			values[number] = text
		}
	}
	if len(s.children) == 0 || len(text) == 0 || text[0] != '{' && text[0] != '[' {
		return
	}
	n := 0
	for key, value := range jsonscan.Members(text) {
		if next := s.child(key, n); next != nil && len(value) > 0 {
			next.find(value, values)
		}
		n++
	}
}

// child returns the step to the member with a key, or to element n of an array, or nil.
func (s *step) child(key []byte, n int) *step {
	switch {
	case key == nil:
		return s.children[strconv.Itoa(n)]
	case bytes.IndexByte(key, '\\') < 0:
		return s.children[string(key[1:max(1, len(key)-1)])]
	}
	var name string
	json.Unmarshal(key, &name) // an invalid key is empty
	return s.children[name]
}
