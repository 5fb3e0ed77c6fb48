package policy

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A step is a node of the tree that the JSON pointers (RFC 6901) of a key form. Its
// children are the members and elements with which pointers continue.
type step struct {
	ends     []int            // numbers of the pointers that end at this node
	members  map[string]*step // by name
	elements []elementStep    // elements with numeric names, in order
	longest  int              // length of the longest name in members, in bytes
}

type elementStep struct {
	number int
	*step
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
		s = s.child(unescape.Replace(name))
	}
	s.ends = append(s.ends, number)
	return nil
}

// child returns the step to a member or element. It adds the step if it does not exist.
func (s *step) child(name string) *step {
	next := s.members[name]
	if next != nil {
		return next
	}
	if s.members == nil {
		s.members = make(map[string]*step)
	}
	next = new(step)
	s.members[name], s.longest = next, max(s.longest, len(name))
	if n, err := strconv.Atoi(name); err == nil && strconv.Itoa(n) == name {
		at, _ := slices.BinarySearchFunc(s.elements, n, func(e elementStep, n int) int { return e.number - n })
		s.elements = slices.Insert(s.elements, at, elementStep{n, next})
	}
	return next
}

// member returns the step to a member, or nil if no pointer leads to it. written is the
// name as in the JSON text, without quotes.
func (s *step) member(written []byte) *step {
	if bytes.IndexByte(written, '\\') < 0 {
		return s.members[string(written)]
	}
	var room [maxText]byte
	name, ok := unescape(room[:0], written, s.longest)
	if !ok {
		return nil
	}
	return s.members[string(name)]
}

// unescape appends the decoded content of a JSON string. ok is false if the string has an
// invalid escape or would become longer than most bytes; unescape then ignores the rest.
func unescape(dst, s []byte, most int) (_ []byte, ok bool) {
	for i := 0; i < len(s); i++ {
		if len(dst) >= most {
			return nil, false
		}
		if s[i] != '\\' {
			dst = append(dst, s[i])
			continue
		}
		i++ // a backslash before the closing quote would escape the quote
		if at := strings.IndexByte(`"\/bfnrt`, s[i]); at >= 0 {
			dst = append(dst, "\"\\/\b\f\n\r\t"[at])
			continue
		}
		r, ok := hexRune(s[i:])
		if !ok {
			return nil, false
		}
		i += 4
		if utf16.IsSurrogate(r) && i+1 < len(s) && s[i+1] == '\\' {
			low, _ := hexRune(s[i+2:])
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				i += 6
			}
		}
		dst = utf8.AppendRune(dst, r) // a lone surrogate becomes U+FFFD
	}
	return dst, len(dst) <= most
}

// hexRune parses the letter u and the four digits of an escape.
func hexRune(s []byte) (r rune, ok bool) {
	if len(s) < 5 || s[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(s[1:5]), 16, 16)
	return rune(n), err == nil
}

// A span is the position of a value in a text. The zero value is a missing value.
type span struct{ begin, end int }

// A finder scans JSON once, until it has found the values for all pointers. It does not
// validate the text, so it can find values in invalid JSON.
//
// Its methods accept the position at which a part of the text starts, and return the
// position at which it ends. They return -1 if the search is over, because all values are
// found or the text is not JSON.
type finder struct {
	text    []byte
	values  []span
	missing int
}

// at returns a byte of the text, or 0 after its end. JSON contains no 0.
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

// value scans the value at i. s is the step that leads to it, or nil. If an object
// contains a name more than once, the first member counts.
func (f *finder) value(i int, s *step) (end int) {
	switch c := f.at(i); {
	case c == '"':
		end = f.string(i)
	case c != '{' && c != '[':
		end = f.word(i)
	case s == nil || len(s.members) == 0:
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

// members scans the object or list at i for the children of s.
func (f *finder) members(i int, s *step) int {
	isObject, last := f.text[i] == '{', f.text[i]+2 // in ASCII, the closing bracket is two characters later
	elements := s.elements
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
			next = s.member(f.text[i+1 : end-1])
			if i = f.blanks(end); f.at(i) != ':' {
				return -1
			}
			i = f.blanks(i + 1)
		} else if len(elements) > 0 && elements[0].number == n {
			next, elements = elements[0].step, elements[1:]
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

// nested skips an object or a list.
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

// word skips a number, true, false or null.
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
