package admin

import (
	"encoding/json"
	"strconv"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// Text decodes a JSON string exactly or returns an error. It never replaces bytes.
func TestText(t *testing.T) {
	for literal, want := range map[string]string{
		`""`:                         "",
		`"a\u0000\n\"\\"`:            "a\x00\n\"\\",
		`"\ud83d\ude00 😀"`:           "😀 😀",
		`"\ufffd\uFFFD` + "\uFFFD\"": "\uFFFD\uFFFD\uFFFD",
		`"\\ufffd \\\\ud800"`:        `\ufffd \\ud800`,
		`"\\\ufffd"`:                 "\\\uFFFD",
	} {
		var got Text
		if err := json.Unmarshal([]byte(literal), &got); err != nil || string(got) != want {
			t.Errorf("%s is %q (%v), want %q", literal, got, err, want)
		}
	}
	for _, literal := range []string{
		"\"caf\xe9\"", "\"\xed\xa0\x80\"", `"\ud800"`, `"\ude00\ud83d"`, `"\ud83dx"`, `"\ufffd\ud83d"`, `"\\ufffd\ud83d"`, `"\\\ufffd\ud83d"`, "\"\\ufffd\xff\"",
	} {
		var got Text
		if err := json.Unmarshal([]byte(literal), &got); err == nil {
			t.Errorf("%s is %q, want an error", literal, got)
		}
	}
}

// FuzzText compares Text with a decoder that reads the literal byte by byte.
func FuzzText(f *testing.F) {
	for _, literal := range []string{`""`, `"a\u0000\n"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\\ufffd\udc00"`, "\"\xff\uFFFD\"", `"\uFFFD"`} {
		f.Add([]byte(literal))
	}
	f.Fuzz(func(t *testing.T, literal []byte) {
		if !json.Valid(literal) || literal[0] != '"' {
			t.Skip("package json passes only valid literals")
		}
		want, ok := decodeLiteral(literal[1:])
		var got Text
		if err := json.Unmarshal(literal, &got); (err == nil) != ok || ok && string(got) != want {
			t.Errorf("%q is %q (%v), want %q, %v", literal, got, err, want, ok)
		}
	})
}

// decodeLiteral decodes the part of a valid string literal after its first quote. ok is
// false if the result is not valid Unicode.
func decodeLiteral(s []byte) (decoded string, ok bool) {
	var b []byte
	for s[0] != '"' {
		switch {
		case s[0] != '\\':
			r, n := utf8.DecodeRune(s)
			if r == utf8.RuneError && n == 1 {
				return "", false
			}
			b, s = append(b, s[:n]...), s[n:]
		case s[1] != 'u':
			escapes := map[byte]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', '"': '"', '\\': '\\', '/': '/'}
			b, s = append(b, escapes[s[1]]), s[2:]
		default:
			r := unit(s)
			if s = s[6:]; utf16.IsSurrogate(r) {
				if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
					return "", false
				}
				if r = utf16.DecodeRune(r, unit(s)); r == utf8.RuneError {
					return "", false
				}
				s = s[6:]
			}
			b = utf8.AppendRune(b, r)
		}
	}
	return string(b), true
}

// unit returns the code unit of an escape such as \u0020.
func unit(s []byte) rune {
	n, _ := strconv.ParseUint(string(s[2:6]), 16, 16)
	return rune(n)
}
