package api

import (
	"encoding/json"
	"testing"
)

// A text is what its literal says, to the byte, or an error: never something like it.
func TestText(t *testing.T) {
	for literal, want := range map[string]string{
		`""`:                         "",
		`"a\u0000\n\"\\"`:            "a\x00\n\"\\",
		`"\ud83d\ude00 😀"`:           "😀 😀",
		`"\ufffd\uFFFD` + "\uFFFD\"": "\uFFFD\uFFFD\uFFFD",
		`"\\ufffd \\\\ud800"`:        `\ufffd \\ud800`,
		`"\\\ufffd"`:                 "\\\uFFFD",
	} {
		var got text
		if err := json.Unmarshal([]byte(literal), &got); err != nil || string(got) != want {
			t.Errorf("%s is %q (%v), want %q", literal, got, err, want)
		}
	}
	for _, literal := range []string{
		"\"caf\xe9\"", "\"\xed\xa0\x80\"", `"\ud800"`, `"\ude00\ud83d"`, `"\ud83dx"`, `"\ufffd\ud83d"`, `"\\ufffd\ud83d"`, `"\\\ufffd\ud83d"`, "\"\\ufffd\xff\"",
	} {
		var got text
		if err := json.Unmarshal([]byte(literal), &got); err == nil {
			t.Errorf("%s is %q, want an error", literal, got)
		}
	}
}
