// Package jsonscan scans JSON without decoding values. It finds the text of a part, and
// is fast enough for millions of objects. In text that is not valid JSON, its results are
// arbitrary.
package jsonscan

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"
)

const blanks = " \t\r\n"

// Members yields the members of an object, with their names as written, or the elements
// of an array, without names.
func Members(text json.RawMessage) iter.Seq2[json.RawMessage, json.RawMessage] {
	return func(yield func(key, value json.RawMessage) bool) {
		isObject := text[0] == '{'
		for rest := bytes.TrimLeft(text[1:], blanks); len(rest) > 0 && rest[0] != '}' && rest[0] != ']'; rest = bytes.TrimLeft(rest, blanks+",") {
			var key json.RawMessage
			if isObject {
				end := StringEnd(rest)
				key, rest = rest[:end], bytes.TrimLeft(rest[end:], blanks+":")
			}
			end := valueEnd(rest)
			if !yield(key, rest[:end]) {
				return
			}
			rest = rest[end:]
		}
	}
}

// valueEnd returns the end of the value at the start of text.
func valueEnd(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			i += StringEnd(text[i:]) - 1
			if depth == 0 {
				return i + 1
			}
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth == 0 {
				return i // the end of the enclosing value
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case depth == 0 && strings.IndexByte(blanks+",", c) >= 0:
			return i
		}
	}
	return len(text)
}

// StringEnd returns the end of the string at the start of text. The string can be
// incomplete.
func StringEnd[T string | []byte](text T) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// DeeperThan reports whether brackets are nested more deeply than a limit.
func DeeperThan(text []byte, limit int) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i += StringEnd(text[i:]) - 1
		case '{', '[':
			if depth++; depth > limit {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}
