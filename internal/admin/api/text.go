package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"
)

// A text is a string of a request that is kept byte for byte. Package json would put
// U+FFFD in the place of what is not Unicode, and say nothing.
type text string

// UnmarshalJSON implements json.Unmarshaler. Its errors are problems.
func (t *text) UnmarshalJSON(literal []byte) error {
	var s string
	if json.Unmarshal(literal, &s) != nil {
		return problemf(http.StatusBadRequest, "body: want a string")
	}
	if !utf8.Valid(literal) || strings.Count(s, "\uFFFD") != replacements(string(literal)) {
		return problemf(http.StatusBadRequest, "body: that is not Unicode: a body of other bytes can be sent as body_base64")
	}
	*t = text(s)
	return nil
}

// replacements returns how often the literal of a string asks for U+FFFD: a half of a
// surrogate pair, which nothing stands for, does not.
func replacements(literal string) int {
	literal = strings.ReplaceAll(literal, `\\`, "")
	return strings.Count(literal, "\uFFFD") + strings.Count(strings.ToLower(literal), `\ufffd`)
}
