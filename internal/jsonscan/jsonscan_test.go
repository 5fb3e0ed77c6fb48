package jsonscan

import (
	"bytes"
	"encoding/json"
	"testing"
)

// For any valid object or list, the package finds the same members or elements as package
// json.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{
		`{}`, `[]`, ` { "a" : 1 , "b":[1,{"c":"]}"}],"a":"\"\\" , "é":null}`, `[ "x" ,-1.5e3, true,[[]],{} ]`, `{"":"}"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		text = bytes.TrimSpace(text)
		if !json.Valid(text) || text[0] != '{' && text[0] != '[' {
			return
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.Token()
		for key, value := range Members(text) {
			if text[0] == '{' {
				want, err := d.Token()
				var got string
				if json.Unmarshal(key, &got) != nil || got != want || err != nil {
					t.Fatalf("%s: the name %s, want %q", text, key, want)
				}
			}
			var want json.RawMessage
			if err := d.Decode(&want); err != nil || !bytes.Equal(bytes.TrimSpace(want), value) {
				t.Fatalf("%s: the value %s, want %s, %v", text, value, want, err)
			}
		}
		if d.More() {
			t.Fatalf("%s has more", text)
		}
		deep := 0
		for limit := range 100 {
			if DeeperThan(text, limit) {
				deep = limit + 1
			}
		}
		if deep == 0 {
			t.Errorf("%s has no depth", text)
		}
	})
}

// StringEnd detects a truncated string.
func TestStringEnd(t *testing.T) {
	for text, want := range map[string]int{`"a"`: 3, `"\"" x`: 4, `"\\"`: 4, `"abc`: 4, `"\`: 2, `"`: 1} {
		if got := StringEnd(text); got != want {
			t.Errorf("%s ends at %d, want %d", text, got, want)
		}
	}
}
