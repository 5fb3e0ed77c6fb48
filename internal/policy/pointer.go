package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxDepth is how deep JSON is nested at most, as for json.Valid.
const maxDepth = 10_000

// A step is a node of the tree that the JSON pointers (RFC 6901) of a key are: the name
// of a member, or the number of an element.
type step struct {
	name    string
	element int   // the number that name is, or -1
	through []int // the pointers that come here, by number
	ends    []int // those of them that lead no further
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
		s.through = append(s.through, number)
	}
	s.ends = append(s.ends, number)
	return nil
}

// member returns the step to a member by its name, as it is written; nil: there is none.
func (s *step) member(written []byte) *step {
	for _, next := range s.next {
		if isNamed(written, next.name) {
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

// isNamed reports whether the name of a member, as it is written, is that one.
func isNamed(written json.RawMessage, name string) bool {
	if bytes.IndexByte(written, '\\') < 0 {
		return string(written[1:len(written)-1]) == name
	}
	var read string
	// The copy keeps the finder on the stack, as Unmarshal's argument escapes.
	return json.Unmarshal(bytes.Clone(written), &read) == nil && read == name
}

// A span is where a value begins and ends in a text; {0, 0}: the pointer leads nowhere.
type span struct{ begin, end int }

// A finder goes over a text once. It checks that the text is JSON, as json.Valid does, and
// notes the value of each pointer.
//
// Its methods take where a part of the text begins and return where the part ends, or -1 if
// it is no JSON.
type finder struct {
	text   []byte
	values []span
}

// find notes the values of the pointers of a tree, and reports whether the text is JSON.
func (f *finder) find(tree *step) bool {
	end := f.value(f.blanks(0), tree, 0)
	return end >= 0 && f.blanks(end) == len(f.text)
}

// at returns a byte of the text; 0, which JSON does not have, after its end.
func (f *finder) at(i int) byte {
	if i < len(f.text) {
		return f.text[i]
	}
	return 0
}

func (f *finder) blanks(i int) int {
	for i < len(f.text) && (f.text[i] == ' ' || f.text[i] == '\n' || f.text[i] == '\r' || f.text[i] == '\t') {
		i++
	}
	return i
}

// value goes over a value to which a step leads; nil: none does.
func (f *finder) value(i int, s *step, depth int) int {
	switch f.at(i) {
	case '"':
		return f.string(i)
	case '{', '[':
		return f.members(i, s, depth+1)
	case 't':
		return f.literal(i, "true")
	case 'f':
		return f.literal(i, "false")
	case 'n':
		return f.literal(i, "null")
	}
	return f.number(i)
}

// members goes over an object or a list.
func (f *finder) members(i int, s *step, depth int) int {
	if depth > maxDepth {
		return -1
	}
	isObject, last := f.text[i] == '{', f.text[i]+2 // as in ASCII
	if i = f.blanks(i + 1); f.at(i) == last {
		return i + 1
	}
	for n := 0; ; n++ {
		var next *step
		if isObject {
			end := f.string(i)
			if end < 0 {
				return -1
			}
			if s != nil {
				next = s.member(f.text[i:end])
			}
			if i = f.blanks(end); f.at(i) != ':' {
				return -1
			}
			i = f.blanks(i + 1)
		} else if s != nil {
			next = s.at(n)
		}
		end := f.member(i, next, depth)
		if end < 0 {
			return -1
		}
		switch i = f.blanks(end); f.at(i) {
		case ',':
			i = f.blanks(i + 1)
		case last:
			return i + 1
		default:
			return -1
		}
	}
}

// member goes over the value of a member. Of two members of a name the second one counts,
// as for most who read JSON.
func (f *finder) member(i int, s *step, depth int) int {
	if s == nil {
		return f.value(i, nil, depth)
	}
	for _, number := range s.through {
		f.values[number] = span{}
	}
	end := f.value(i, s, depth)
	if end >= 0 {
		for _, number := range s.ends {
			f.values[number] = span{i, end}
		}
	}
	return end
}

func (f *finder) literal(i int, word string) int {
	if !bytes.HasPrefix(f.text[i:], []byte(word)) {
		return -1
	}
	return i + len(word)
}

func (f *finder) number(i int) int {
	if f.at(i) == '-' {
		i++
	}
	if f.at(i) == '0' {
		i++
	} else if i = f.digits(i); i < 0 {
		return -1
	}
	if f.at(i) == '.' {
		if i = f.digits(i + 1); i < 0 {
			return -1
		}
	}
	if c := f.at(i); c == 'e' || c == 'E' {
		i++
		if c = f.at(i); c == '+' || c == '-' {
			i++
		}
		return f.digits(i)
	}
	return i
}

// digits goes over one digit or more.
func (f *finder) digits(i int) int {
	begin := i
	for c := f.at(i); '0' <= c && c <= '9'; c = f.at(i) {
		i++
	}
	if i == begin {
		return -1
	}
	return i
}

func (f *finder) string(i int) int {
	if f.at(i) != '"' {
		return -1
	}
	for i++; i < len(f.text); i++ {
		switch f.text[i] {
		case '"':
			return i + 1
		case '\\':
			i++
			switch f.at(i) {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					i++
					if !isHex(f.at(i)) {
						return -1
					}
				}
			default:
				return -1
			}
		default:
			if f.text[i] < ' ' {
				return -1
			}
		}
	}
	return -1
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
