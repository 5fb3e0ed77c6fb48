package decode

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fromPHP converts arrays and objects in PHP's serialize format to JSON. It treats
// classes only as names.
func fromPHP(body []byte) ([]byte, bool) {
	body = bytes.TrimSpace(body)
	if len(body) < 4 || len(body) > unpackLimit || !strings.Contains("aOCE", string(body[:1])) || body[1] != ':' {
		return nil, false
	}
	p := &phpReader{in: body}
	if !p.value(nil, 0) || len(p.in) > 0 {
		return nil, false
	}
	return p.out.Bytes(), true
}

// A phpReader reads values and writes JSON. With edited JSON, it writes PHP's format.
type phpReader struct {
	in     []byte
	out    bytes.Buffer
	packed bytes.Buffer
	inside int // number of enclosing strings; see packStructure
}

// until reads up to a character, and skips that character.
func (p *phpReader) until(end byte) (string, bool) {
	i := bytes.IndexByte(p.in, end)
	if i < 0 || i > 64 {
		return "", false
	}
	text := string(p.in[:i])
	p.in = p.in[i+1:]
	return text, true
}

func (p *phpReader) skip(text string) bool {
	rest, ok := bytes.CutPrefix(p.in, []byte(text))
	if ok {
		p.in = rest
	}
	return ok
}

// count reads a number and the following colon. It rejects numbers that are larger than
// the length of the remaining data.
func (p *phpReader) count() (int, bool) {
	text, ok := p.until(':')
	n, err := strconv.Atoi(text)
	return n, ok && err == nil && n >= 0 && n <= len(p.in)
}

// quoted reads LENGTH:"TEXT".
func (p *phpReader) quoted() (string, bool) { return p.between(`"`, `"`) }

// between reads LENGTH: and that number of bytes between two marks.
func (p *phpReader) between(begin, end string) (string, bool) {
	n, ok := p.count()
	if !ok || !p.skip(begin) || n > len(p.in) {
		return "", false
	}
	s := string(p.in[:n])
	p.in = p.in[n:]
	return s, p.skip(end)
}

// value reads a value. edited is the new JSON; it is nil if the value was not edited.
func (p *phpReader) value(edited json.RawMessage, depth int) bool {
	edited = bytes.TrimSpace(edited)
	if depth > maxDepth || len(p.in) < 2 || p.out.Len() > unpackLimit {
		return false
	}
	if kind := p.in[0]; kind == 'a' || kind == 'O' {
		if len(edited) > 0 && edited[0] != '{' {
			return false
		}
		return p.members(edited, depth)
	}
	raw, at := p.in, p.out.Len()
	if !p.scalar() {
		return false
	}
	return len(edited) == 0 || p.pack(raw[:len(raw)-len(p.in)], p.out.Bytes()[at:], edited)
}

// scalar reads a value without elements.
func (p *phpReader) scalar() bool {
	kind := p.in[0]
	if kind == 'N' {
		p.out.WriteString("null")
		return p.skip("N;")
	}
	if p.in[1] != ':' {
		return false
	}
	p.in = p.in[2:]
	switch kind {
	case 'b':
		text, ok := p.until(';')
		p.out.WriteString(map[string]string{"0": "false", "1": "true"}[text])
		return ok && (text == "0" || text == "1")
	case 'i', 'd', 'r', 'R':
		return p.number(kind)
	case 's':
		s, ok := p.quoted()
		p.text(s)
		return ok && p.skip(";")
	case 'C':
		return p.custom()
	case 'E': // an enum case
		s, ok := p.quoted()
		p.text(strings.Replace(s, ":", "::", 1))
		return ok && p.skip(";")
	}
	return false
}

// custom reads LENGTH:"CLASS":LENGTH:{...}, the data of a class with its own
// serialization.
func (p *phpReader) custom() bool {
	class, ok := p.quoted()
	if !ok || !p.skip(":") {
		return false
	}
	data, ok := p.between("{", "}")
	p.out.WriteString(`{"@class":`)
	p.text(class)
	p.out.WriteString(`,"@data":`)
	p.text(data)
	p.out.WriteByte('}')
	return ok
}

func (p *phpReader) number(kind byte) bool {
	text, ok := p.until(';')
	if !ok {
		return false
	}
	switch {
	case kind == 'r' || kind == 'R':
		p.text("→" + text) // a reference to another value
	case json.Valid([]byte(text)):
		p.out.WriteString(text)
	default:
		p.text(text) // INF, NAN
	}
	return true
}

// members reads COUNT:{KEY VALUE ...}. In an object, the class precedes it. Edited JSON
// must have the same members.
func (p *phpReader) members(edited json.RawMessage, depth int) bool {
	whole, class := p.in, ""
	ok := p.skip("a:") // a separate statement: otherwise Go could call it before it reads p.in
	if !ok {
		if ok = p.skip("O:"); ok {
			class, ok = p.quoted()
		}
		ok = ok && p.skip(":")
	}
	n, counted := p.count()
	if !ok || !counted || !p.skip("{") {
		return false
	}
	p.keep(whole, edited)
	p.out.WriteByte('{')
	of := objectOf(edited)
	if class != "" {
		p.out.WriteString(`"@class":`)
		p.text(class)
		delete(of, "@class")
	}
	if edited != nil && len(of) != n {
		return false
	}
	for i := range n {
		if i > 0 || class != "" {
			p.out.WriteByte(',')
		}
		before, at := p.in, p.out.Len()
		if !p.key() {
			return false
		}
		p.keep(before, edited)
		value := of[memberName(p.out.Bytes()[at:], 0)]
		p.out.WriteByte(':')
		if edited != nil && value == nil || !p.value(value, depth+1) {
			return false
		}
	}
	p.out.WriteByte('}')
	p.packed.WriteByte('}')
	return p.skip("}")
}

// keep copies the data read since the given point to the result, if the value belongs to
// edited JSON.
func (p *phpReader) keep(since []byte, edited json.RawMessage) {
	if edited != nil {
		p.packed.Write(since[:len(since)-len(p.in)])
	}
}

// key reads a key: a number or a string. The name of a property that is not public
// follows its class, which is between zero bytes.
func (p *phpReader) key() bool {
	switch {
	case p.skip("i:"):
		text, ok := p.until(';')
		p.text(text)
		return ok
	case p.skip("s:"):
		s, ok := p.quoted()
		if i := bytes.LastIndexByte([]byte(s), 0); i >= 0 {
			s = s[i+1:]
		}
		p.text(s)
		return ok && p.skip(";")
	}
	return false
}

func (p *phpReader) text(s string) {
	if !utf8.ValidString(s) {
		s = strconv.QuoteToASCII(s)
	}
	p.out.Write(jsonText(s))
}

// jsonText returns a string as readable JSON.
func jsonText(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(s) // a string cannot fail
	return bytes.TrimSpace(b.Bytes())
}
