package decode

import "bytes"

// Open returns a body as it is looked into: with what it is packed in taken off, and what PHP, JSON or base64 has written into its
// strings in their place, as JSON; or as text. It returns nil if there is nothing to open, which most bodies tell at a glance.
func Open(body []byte) []byte {
	if len(body) < 4 || len(body) > Limit || !mayOpen(body) {
		return nil
	}
	text, ok := structureOf(body)
	if !ok {
		text, ok = fromMessagePack(body)
	}
	if ok {
		if opened, ok := withInside(text, 0); ok {
			return opened
		}
	} else if s, _ := Text(body); s != "" {
		text = []byte(s)
	}
	if bytes.Equal(text, body) {
		return nil
	}
	return text
}

// mayOpen reports whether something may be in a body that is not there to see. JSON has in a string what needs escapes, or a long word.
func mayOpen(body []byte) bool {
	if body[0] != '{' && body[0] != '[' {
		return true
	}
	if bytes.Contains(body, []byte(`\"`)) {
		return true
	}
	const long = 24
	run := 0
	for _, c := range body {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '=' {
			if run++; run == long {
				return true
			}
		} else {
			run = 0
		}
	}
	return false
}
