package admin

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// A Text is a string that is kept byte for byte when it is read. Package json would put
// U+FFFD in the place of what is not Unicode, and say nothing.
type Text string

// A wantError says what a text should be.
type wantError string

const (
	errNotString  wantError = "a string"
	errNotUnicode wantError = "text in Unicode: a body of other bytes can be sent as body_base64"
)

// Error implements error.
func (e wantError) Error() string { return string(e) }

// Wanted is for package op.
func (e wantError) Wanted() string { return string(e) }

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(literal []byte) error {
	if string(literal) == "null" {
		return nil
	}
	var s string
	if json.Unmarshal(literal, &s) != nil {
		return errNotString
	}
	if n := strings.Count(s, "\uFFFD"); !utf8.Valid(literal) || n > 0 && n != replacements(string(literal)) {
		return errNotUnicode
	}
	*t = Text(s)
	return nil
}

// replacements returns how often the literal of a string asks for U+FFFD: a half of a
// surrogate pair, which nothing stands for, does not.
func replacements(literal string) int {
	literal = strings.ReplaceAll(literal, `\\`, "")
	return strings.Count(literal, "\uFFFD") + strings.Count(strings.ToLower(literal), `\ufffd`)
}
