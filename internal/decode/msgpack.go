package decode

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"
)

// fromMessagePack makes JSON of a map or a list of MessagePack.
func fromMessagePack(body []byte) ([]byte, bool) {
	if len(body) < 2 || len(body) > unpackLimit || !isMapOrList(body[0]) {
		return nil, false
	}
	p := &packReader{in: body}
	if !p.value(0) || len(p.in) > 0 {
		return nil, false
	}
	return p.out.Bytes(), true
}

// isMapOrList reports whether a value begins so. Text does not: it begins with less than 0x80.
func isMapOrList(c byte) bool { return c >= 0x80 && c <= 0x9f || c >= 0xdc && c <= 0xdf }

// A packReader reads values and writes JSON.
type packReader struct {
	in  []byte
	out bytes.Buffer
}

// take reads n bytes.
func (p *packReader) take(n int) ([]byte, bool) {
	if n < 0 || n > len(p.in) {
		return nil, false
	}
	b := p.in[:n]
	p.in = p.in[n:]
	return b, true
}

// size reads a number of 1, 2, 4 or 8 bytes.
func (p *packReader) size(bytes int) (uint64, bool) {
	b, ok := p.take(bytes)
	if !ok {
		return 0, false
	}
	var wide [8]byte
	copy(wide[8-bytes:], b)
	return binary.BigEndian.Uint64(wide[:]), true
}

func (p *packReader) value(depth int) bool {
	first, ok := p.take(1)
	if !ok || depth > maxDepth || p.out.Len() > unpackLimit {
		return false
	}
	switch c := first[0]; {
	case c <= 0x7f:
		p.out.WriteString(strconv.Itoa(int(c)))
	case c >= 0xe0:
		p.out.WriteString(strconv.Itoa(int(int8(c))))
	case c <= 0x8f:
		return p.object(uint64(c&0x0f), depth)
	case c <= 0x9f:
		return p.list(uint64(c&0x0f), depth)
	case c <= 0xbf:
		return p.text(uint64(c & 0x1f))
	default:
		return p.long(c, depth)
	}
	return true
}

// long reads a value whose first byte says only what it is.
func (p *packReader) long(c byte, depth int) bool {
	sized := func(bytes int, read func(n uint64) bool) bool {
		n, ok := p.size(bytes)
		return ok && read(n)
	}
	switch c {
	case 0xc0, 0xc2, 0xc3:
		p.out.WriteString(map[byte]string{0xc0: "null", 0xc2: "false", 0xc3: "true"}[c])
		return true
	case 0xc4, 0xc5, 0xc6: // bytes
		return sized(1<<(c-0xc4), p.text)
	case 0xc7, 0xc8, 0xc9: // an extension, with its type
		return sized(1<<(c-0xc7), func(n uint64) bool { return n < math.MaxInt32 && p.text(n+1) })
	case 0xca:
		return sized(4, func(n uint64) bool { return p.float(float64(math.Float32frombits(uint32(n)))) })
	case 0xcb:
		return sized(8, func(n uint64) bool { return p.float(math.Float64frombits(n)) })
	case 0xcc, 0xcd, 0xce, 0xcf:
		return sized(1<<(c-0xcc), func(n uint64) bool {
			p.out.WriteString(strconv.FormatUint(n, 10))
			return true
		})
	case 0xd0, 0xd1, 0xd2, 0xd3:
		bytes := 1 << (c - 0xd0)
		return sized(bytes, func(n uint64) bool {
			shift := 64 - 8*bytes
			p.out.WriteString(strconv.FormatInt(int64(n<<shift)>>shift, 10))
			return true
		})
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8:
		return p.text(1 + 1<<(c-0xd4))
	case 0xd9, 0xda, 0xdb:
		return sized(1<<(c-0xd9), p.text)
	case 0xdc, 0xdd:
		return sized(2<<(c-0xdc), func(n uint64) bool { return p.list(n, depth) })
	case 0xde, 0xdf:
		return sized(2<<(c-0xde), func(n uint64) bool { return p.object(n, depth) })
	}
	return false
}

func (p *packReader) float(v float64) bool {
	text, err := json.Marshal(v)
	if err != nil { // not a number, or infinite
		text = jsonText(strconv.FormatFloat(v, 'g', -1, 64))
	}
	p.out.Write(text)
	return true
}

func (p *packReader) text(n uint64) bool {
	if n > uint64(len(p.in)) {
		return false
	}
	b, _ := p.take(int(n))
	s := string(b)
	if !utf8.ValidString(s) {
		s = strconv.QuoteToASCII(s)
	}
	p.out.Write(jsonText(s))
	return true
}

func (p *packReader) list(n uint64, depth int) bool {
	if n > uint64(len(p.in)) {
		return false
	}
	p.out.WriteByte('[')
	for i := range n {
		if i > 0 {
			p.out.WriteByte(',')
		}
		if !p.value(depth + 1) {
			return false
		}
	}
	p.out.WriteByte(']')
	return true
}

// object reads a map. A key that is no text is shown as one.
func (p *packReader) object(n uint64, depth int) bool {
	if n > uint64(len(p.in)) {
		return false
	}
	p.out.WriteByte('{')
	for i := range n {
		if i > 0 {
			p.out.WriteByte(',')
		}
		at := p.out.Len()
		if !p.value(depth + 1) {
			return false
		}
		if key := bytes.Clone(p.out.Bytes()[at:]); key[0] != '"' {
			p.out.Truncate(at)
			p.out.Write(jsonText(string(key)))
		}
		p.out.WriteByte(':')
		if !p.value(depth + 1) {
			return false
		}
	}
	p.out.WriteByte('}')
	return true
}
