package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A step is a node of the tree that the JSON pointers (RFC 6901) of a key are: the name
// of a member, or the number of an element.
type step struct {
	name    string
	element int   // the number that name is, or -1
	ends    []int // the pointers that lead here, by number
	next    []*step
}

// add adds a pointer with its number to the tree that begins at s.
func (s *step) add(pointer string, number int) error {
	names := strings.Split(pointer, "/")
	if names[0] != "" || len(names) < 2 {
		return fmt.Errorf("%q is no JSON pointer", pointer)
	}
	if strings.Count(pointer, "~") != strings.Count(pointer, "~0")+strings.Count(pointer, "~1") {
		return fmt.Errorf("%q is no JSON pointer: ~ is written ~0", pointer)
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, name := range names[1:] {
		name = unescape.Replace(name)
		at := slices.IndexFunc(s.next, func(n *step) bool { return n.name == name })
		if at < 0 {
			next := &step{name: name, element: -1}
			if n, err := strconv.Atoi(name); err == nil && strconv.Itoa(n) == name {
				next.element = n
			}
			at, s.next = len(s.next), append(s.next, next)
		}
		s = s.next[at]
	}
	s.ends = append(s.ends, number)
	return nil
}

// member returns the step to a member by its name, as it is written; nil: there is none. A
// name with escapes is read once, however many pointers there are.
func (s *step) member(written []byte) *step {
	name := written[1 : len(written)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		var read string
		// The copy keeps the finder on the stack, as Unmarshal's argument escapes.
		if json.Unmarshal(bytes.Clone(written), &read) != nil {
			return nil
		}
		name = []byte(read)
	}
	for _, next := range s.next {
		if string(name) == next.name {
			return next
		}
	}
	return nil
}

// at returns the step to an element; nil: there is none.
func (s *step) at(element int) *step {
	for _, next := range s.next {
		if next.element == element {
			return next
		}
	}
	return nil
}

// A span is where a value begins and ends in a text; {0, 0}: it is not found.
type span struct{ begin, end int }

// A finder goes over JSON once, until it has found the values of all pointers. What it
// passes over it checks no more than it has to, so it finds something in texts that are
// only nearly JSON, too.
//
// Its methods take where a part of the text begins and return where the part ends, or -1
// if the search is over: nothing is missing, or the text is no JSON.
type finder struct {
	text    []byte
	values  []span
	missing int
}

// at returns a byte of the text; 0, which JSON does not have, after its end.
func (f *finder) at(i int) byte {
	if i < len(f.text) {
		return f.text[i]
	}
	return 0
}

func (f *finder) blanks(i int) int {
	for i < len(f.text) && f.text[i] <= ' ' {
		i++
	}
	return i
}

// value goes over a value to which a step leads; nil: none does. Of two members of a name
// the first one counts.
func (f *finder) value(i int, s *step) (end int) {
	switch c := f.at(i); {
	case c == '"':
		end = f.string(i)
	case c != '{' && c != '[':
		end = f.word(i)
	case s == nil || len(s.next) == 0:
		end = f.nested(i)
	default:
		end = f.members(i, s)
	}
	if s == nil || end < 0 {
		return end
	}
	for _, number := range s.ends {
		if v := &f.values[number]; v.end == 0 {
			*v = span{i, end}
			f.missing--
		}
	}
	if f.missing == 0 {
		return -1
	}
	return end
}

// members goes over an object or a list, in which steps lead on.
func (f *finder) members(i int, s *step) int {
	isObject, last := f.text[i] == '{', f.text[i]+2 // as in ASCII
	for n := 0; ; n++ {
		var next *step
		if i = f.blanks(i + 1); f.at(i) == last {
			return i + 1
		}
		if isObject {
			end := f.string(i)
			if end < 0 {
				return -1
			}
			next = s.member(f.text[i:end])
			if i = f.blanks(end); f.at(i) != ':' {
				return -1
			}
			i = f.blanks(i + 1)
		} else {
			next = s.at(n)
		}
		if i = f.value(i, next); i < 0 {
			return -1
		}
		switch i = f.blanks(i); f.at(i) {
		case ',':
		case last:
			return i + 1
		default:
			return -1
		}
	}
}

// nested goes over an object or a list, in which no step leads on.
func (f *finder) nested(i int) int {
	for depth := 0; i >= 0 && i < len(f.text); {
		switch f.text[i] {
		case '"':
			i = f.string(i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// word goes over a number, true, false or null.
func (f *finder) word(i int) int {
	for begin := i; ; i++ {
		switch c := f.at(i); {
		case c > ' ' && c != ',' && c != ']' && c != '}':
		case i > begin && i < len(f.text):
			return i
		default:
			return -1
		}
	}
}

func (f *finder) string(i int) int {
	if f.at(i) != '"' {
		return -1
	}
	for {
		n := bytes.IndexByte(f.text[i+1:], '"')
		if n < 0 {
			return -1
		}
		i += 1 + n
		before := i
		for f.text[before-1] == '\\' {
			before--
		}
		if (i-before)%2 == 0 { // else the last backslash is for the quote
			return i + 1
		}
	}
}
