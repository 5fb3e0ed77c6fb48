package decode

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"
)

// fromMessagePack makes JSON of a map or a list of MessagePack.
func fromMessagePack(body []byte) ([]byte, bool) {
	if len(body) < 2 || len(body) > unpackLimit || !isMapOrList(body[0]) {
		return nil, false
	}
	out, rest, ok := appendPacked(nil, body, 0)
	return out, ok && len(rest) == 0
}

// isMapOrList reports whether a value begins so. Text does not: it begins with less than 0x80.
func isMapOrList(c byte) bool { return c >= 0x80 && c <= 0x9f || c >= 0xdc && c <= 0xdf }

// appendPacked appends a value as JSON, and returns what is behind it. The library reads a
// map into one of Go, which would lose the order, and takes no numbers for keys.
func appendPacked(out, in []byte, depth int) (_, rest []byte, ok bool) {
	if len(in) == 0 || depth > maxDepth || len(out) > unpackLimit {
		return nil, nil, false
	}
	if !isMapOrList(in[0]) {
		v, rest, err := readPacked(in)
		if err != nil {
			return nil, nil, false
		}
		return append(out, v...), rest, true
	}
	isMap := msgp.NextType(in) == msgp.MapType
	read, ends := msgp.ReadArrayHeaderBytes, "[]"
	if isMap {
		read, ends = msgp.ReadMapHeaderBytes, "{}"
	}
	n, rest, err := read(in)
	if err != nil {
		return nil, nil, false
	}
	out = append(out, ends[0])
	for i := range n {
		if i > 0 {
			out = append(out, ',')
		}
		if isMap {
			at := len(out)
			if out, rest, ok = appendPacked(out, rest, depth+1); !ok {
				return nil, nil, false
			}
			if out[at] != '"' { // a key that is no text is shown as one
				out = append(out[:at], jsonText(string(out[at:]))...)
			}
			out = append(out, ':')
		}
		if out, rest, ok = appendPacked(out, rest, depth+1); !ok {
			return nil, nil, false
		}
	}
	return append(out, ends[1]), rest, true
}

// extensionSize is how many bytes stand before the type of an extension, if that is not one.
var extensionSize = map[byte]int{0xc7: 2, 0xc8: 3, 0xc9: 5}

// readPacked returns as JSON a value that has no others in it. Bytes are text, and so is an
// extension, which begins with its type.
func readPacked(in []byte) (text, rest []byte, err error) {
	var v any
	if c := in[0]; c >= 0xc7 && c <= 0xc9 || c >= 0xd4 && c <= 0xd8 {
		if rest, err = msgp.Skip(in); err == nil {
			v = in[max(1, extensionSize[c]) : len(in)-len(rest)]
		}
	} else {
		v, rest, err = msgp.ReadIntfBytes(in)
	}
	if b, ok := v.([]byte); ok {
		v = string(b)
	}
	if s, ok := v.(string); ok {
		if !utf8.ValidString(s) {
			s = strconv.QuoteToASCII(s)
		}
		return jsonText(s), rest, err
	}
	if text, wrong := json.Marshal(v); wrong == nil {
		return text, rest, err
	}
	return jsonText(fmt.Sprint(v)), rest, err // not a number, or infinite
}
