package admin

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// A Text is a string that is never altered when it is decoded. Package encoding/json
// would silently replace invalid Unicode by U+FFFD.
type Text string

// A wantError describes the expected text.
type wantError string

const (
	errNotString  wantError = "a string"
	errNotUnicode wantError = "Unicode text; send a body of other bytes as body_base64"
)

// Error implements error.
func (e wantError) Error() string { return string(e) }

// Wanted implements the interface that package op expects.
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

// replacements returns the number of U+FFFD characters in the literal of a string. An
// unpaired surrogate does not count.
func replacements(literal string) int {
	literal = strings.ReplaceAll(literal, `\\`, "")
	return strings.Count(literal, "\uFFFD") + strings.Count(strings.ToLower(literal), `\ufffd`)
}
