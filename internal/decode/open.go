package decode

import (
	"bytes"
	"encoding/base64"
)

// Open returns a body in the form that searches examine: decoded, and with PHP, JSON or
// base64 strings replaced by their content, as JSON or text. It returns nil if there is
// nothing to decode. For most bodies, Open detects this without decoding.
func Open(body []byte) []byte {
	if len(body) < 4 || len(body) > Limit || !mayOpen(body) {
		return nil
	}
	text, ok := opened(body, 0, newBudget())
	if !ok {
		s, _ := Text(body)
		text = []byte(s)
	}
	if bytes.Equal(text, body) {
		return nil
	}
	return text
}

// mayOpen reports whether a body can contain encoded data: JSON with escapes in a string,
// or with a long base64 word.
func mayOpen(body []byte) bool {
	if body[0] != '{' && body[0] != '[' {
		return true
	}
	if bytes.Contains(body, []byte(`\"`)) {
		return true
	}
	const long = 24
	run, start := 0, 0 // start of the string
	for i, c := range body {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '=':
			if run++; run == long && mayBeginPacked(body[start:]) {
				return true
			}
			continue
		case c == '"':
			start = i + 1
		}
		run = 0
	}
	return false
}

// mayBeginPacked reports whether a string can be base64 of JSON, PHP's serialize, gzip,
// zlib or base64. Words that only look like base64, such as digests and tokens, rarely
// match.
func mayBeginPacked(text []byte) bool {
	var first [3]byte
	if _, err := base64.StdEncoding.Decode(first[:], text[:4]); err != nil {
		return true // an escape
	}
	switch a, b := first[0], first[1]; {
	case a == '{' || a == '[' || a == ' ' || a == '\t' || a == '\r' || a == '\n':
		return true
	case a == 0x1f && b == 0x8b || a == 0x78: // gzip, zlib
		return true
	case b == ':' || b == ';': // PHP
		return true
	}
	_, err := base64.StdEncoding.DecodeString(string(first[:]) + "A")
	return err == nil
}
