package decode

import (
	"errors"

	"github.com/tinylib/msgp/msgp"
)

// fromMessagePack converts a MessagePack map or array to JSON, with bytes in base64. Text
// is never such data, because it starts with a byte below 0x80.
func fromMessagePack(body []byte) ([]byte, bool) {
	if len(body) < 2 || len(body) > unpackLimit {
		return nil, false
	}
	if kind := msgp.NextType(body); kind != msgp.MapType && kind != msgp.ArrayType {
		return nil, false
	}
	var out limited
	rest, err := msgp.UnmarshalAsJSON(&out, body)
	return out, err == nil && len(rest) == 0 && isJSON(out)
}

// A limited is a buffer of up to unpackLimit bytes. JSON can be several times as long as
// MessagePack.
type limited []byte

func (l *limited) Write(b []byte) (int, error) {
	if len(*l)+len(b) > unpackLimit {
		return 0, errors.New("too long")
	}
	*l = append(*l, b...)
	return len(b), nil
}
