package decode

import (
	"bytes"

	"github.com/tinylib/msgp/msgp"
)

// fromMessagePack makes JSON of a map or a list of MessagePack. Bytes are base64 in it. Text is no such thing: it begins with less than 0x80.
func fromMessagePack(body []byte) ([]byte, bool) {
	if len(body) < 2 || len(body) > unpackLimit {
		return nil, false
	}
	if kind := msgp.NextType(body); kind != msgp.MapType && kind != msgp.ArrayType {
		return nil, false
	}
	var out bytes.Buffer
	rest, err := msgp.UnmarshalAsJSON(&out, body)
	return out.Bytes(), err == nil && len(rest) == 0 && isJSON(out.Bytes())
}
