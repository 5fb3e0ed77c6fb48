package decode

import (
	"bytes"
	"encoding/json"

	"github.com/beanpole-mq/beanpole/internal/jsonscan"
)

// maxInside is the maximum depth of strings inside strings.
const maxInside = 4

// withInside replaces strings that contain JSON or PHP's serialize, possibly encoded,
// with their content. It reports whether there was such a string.
func withInside(text []byte, depth int, b *budget) ([]byte, bool) {
	compacted := compact(text)
	if len(text) > Limit || compacted == nil {
		return nil, false
	}
	var out bytes.Buffer
	found := false
	for _, t := range tokensOf(string(compacted)) {
		if t.Class == "string" {
			if inside, ok := insideOf(t.Text, depth, b); ok {
				found = true
				out.Write(inside)
				continue
			}
		}
		out.WriteString(t.Text)
	}
	return out.Bytes(), found
}

// insideOf returns the content of a JSON string as JSON.
func insideOf(quoted string, depth int, b *budget) ([]byte, bool) {
	var s string
	if depth >= maxInside || len(quoted) < len(`"a:0:{}"`) || json.Unmarshal([]byte(quoted), &s) != nil {
		return nil, false
	}
	return opened([]byte(s), depth+1, b)
}

// opened returns a text as JSON, with decoded strings.
func opened(text []byte, depth int, b *budget) ([]byte, bool) {
	shown, ok := structureOf(text, b)
	if !ok && depth == 0 {
		shown, ok = fromMessagePack(text)
	}
	if inside, has := withInside(shown, depth, b); ok && has {
		return inside, true
	}
	return shown, ok
}

// structureOf converts a text to JSON. The text can be JSON or PHP's serialize, possibly
// with slashes, or encoded in base64, gzip or zlib.
func structureOf(text []byte, b *budget) ([]byte, bool) {
	text, _ = unpackAll(text, Limit, b)
	if isJSON(text) {
		return text, true
	}
	if inside, ok := fromPHP(text); ok {
		return inside, true
	}
	if bytes.Contains(text, []byte(`\"`)) {
		return fromPHP(withoutSlashes(text))
	}
	return nil, false
}

// isJSON reports whether a text is a JSON object or array that can be displayed.
func isJSON(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) > 0 && (text[0] == '{' || text[0] == '[') && len(text) <= unpackLimit && !jsonscan.DeeperThan(text, maxDepth) && json.Valid(text)
}

// withoutSlashes reverts PHP's addslashes, which Symfony applies to serialized data.
func withoutSlashes(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			if i++; text[i] == '0' {
				out = append(out, 0)
				continue
			}
		}
		out = append(out, text[i])
	}
	return out
}

// compact returns JSON without spaces, or nil if the text is not JSON.
func compact(text []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return nil
	}
	return out.Bytes()
}
