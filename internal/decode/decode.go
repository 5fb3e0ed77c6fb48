package decode

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/beanpole-mq/beanpole/internal/op/jsonscan"
)

const (
	// Limit is how many bytes of a body are shown.
	Limit = 256 << 10

	unpackLimit = 8 << 20
	maxDepth    = 64
	maxHex      = 16 << 10 // bytes that are shown in hexadecimal
)

// A View is a way to show a body.
type View struct {
	Name, Title string
	Note        string // what was done to see it, or what is not shown
	Tokens      []Token
}

// A Token is a piece of text with what it is: key, string, number, word, punct, or nothing.
type Token struct{ Class, Text string }

// Views returns the ways to show a body, the best first. There are always text or hex.
func Views(body []byte) []View {
	views := append(structured(body, ""), unpacked(body)...)
	if utf8.Valid(body) {
		shown, note := cut(body, Limit)
		views = append(views, View{"text", "Text", note, []Token{{"", shown}}})
	}
	for _, v := range views {
		for i := range v.Tokens {
			v.Tokens[i].Text = visible(v.Tokens[i].Text)
		}
	}
	shown, note := cut(body, maxHex)
	return append(views, View{"hex", "Hex", note, []Token{{"", hex.Dump([]byte(shown))}}})
}

// visible writes as escapes what nobody sees, or what changes how the rest is seen: controls, and marks of the direction of text.
func visible(text string) string {
	if strings.IndexFunc(text, isHidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, c := range text {
		if isHidden(c) {
			fmt.Fprintf(&b, `\u%04x`, c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

func isHidden(c rune) bool {
	switch {
	case c == '\n', c == '\t':
		return false
	case c == 0x61c, c >= 0x200b && c <= 0x200f && c != 0x200d, c >= 0x2028 && c <= 0x202e, c >= 0x2060 && c <= 0x2069, c == 0xfeff:
		return true
	}
	return unicode.IsControl(c)
}

// structured returns the views of a body that has a structure. prefix names what was unpacked.
func structured(body []byte, prefix string) (views []View) {
	name := func(s string) string { return strings.TrimPrefix(prefix+"-"+s, "-") }
	note := map[string]string{"": "", "base64": "decoded from base64", "gzip": "unpacked from gzip", "zlib": "unpacked from zlib"}[prefix]
	add := func(as, what string, text []byte) {
		tokens, ok := fromJSON(text)
		if !ok {
			return
		}
		if opened, ok := withInside(text, 0); ok {
			if tokens, ok := fromJSON(opened); ok {
				views = append(views, View{name(as + "-opened"), title("Opened", prefix), strings.TrimPrefix(note+"; PHP, JSON and base64 inside of strings are shown opened", "; "), tokens})
			}
		}
		views = append(views, View{name(as), title(what, prefix), note, tokens})
	}
	add("json", "JSON", body)
	if text, ok := fromPHP(body); ok {
		add("php", "PHP", text)
	}
	if text, ok := fromMessagePack(body); ok {
		add("msgpack", "MessagePack", text)
	}
	return views
}

func title(what, prefix string) string {
	if prefix == "" {
		return what
	}
	return what + " in " + prefix
}

// unpacked returns the views of what a body has in it, if it is packed.
func unpacked(body []byte) (views []View) {
	for _, p := range packings {
		inside, ok := p.unpack(body, unpackLimit)
		if !ok {
			continue
		}
		inner := structured(inside, p.name)
		if len(inner) == 0 && utf8.Valid(inside) && printable(inside) {
			shown, note := cut(inside, Limit)
			inner = []View{{p.name + "-text", title("Text", p.name), note, []Token{{"", shown}}}}
		}
		views = append(views, inner...)
	}
	return views
}

// packings are ways in which a body has another one in it.
var packings = []struct {
	name   string
	unpack func(packed []byte, limit int64) ([]byte, bool)
}{
	{"base64", func(b []byte, _ int64) ([]byte, bool) { return fromBase64(b) }},
	{"gzip", func(b []byte, limit int64) ([]byte, bool) {
		if !bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
			return nil, false
		}
		z, err := gzip.NewReader(bytes.NewReader(b))
		return readAll(z, err, limit)
	}},
	{"zlib", func(b []byte, limit int64) ([]byte, bool) {
		if len(b) < 6 || b[0] != 0x78 {
			return nil, false
		}
		z, err := zlib.NewReader(bytes.NewReader(b))
		return readAll(z, err, limit)
	}},
}

// unpack returns what a body has in it that is packed in any way.
func unpack(body []byte, limit int64) ([]byte, bool) {
	for _, p := range packings {
		if inside, ok := p.unpack(body, limit); ok {
			return inside, true
		}
	}
	return nil, false
}

// readAll reads what was packed, as far as it may be.
func readAll(z io.Reader, err error, limit int64) ([]byte, bool) {
	if err != nil {
		return nil, false
	}
	inside, err := io.ReadAll(io.LimitReader(z, limit))
	return inside, err == nil && len(inside) > 0
}

// minBase64 is how long a text is at least that is taken for base64: short words may look so.
const minBase64 = 16

func fromBase64(body []byte) ([]byte, bool) {
	text := strings.TrimRight(strings.TrimSpace(string(body)), "=")
	if len(text) < minBase64 || len(text) > unpackLimit {
		return nil, false
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if inside, err := encoding.DecodeString(text); err == nil {
			return inside, true
		}
	}
	return nil, false
}

// Base64Text returns bytes as base64.
func Base64Text(body []byte) string { return base64.StdEncoding.EncodeToString(body) }

func cut(body []byte, most int) (text, note string) {
	if len(body) > most {
		for most > 0 && !utf8.RuneStart(body[most]) {
			most--
		}
		return string(body[:most]), "only the beginning is shown"
	}
	return string(body), ""
}

func printable(text []byte) bool {
	for _, c := range string(text) {
		if c < ' ' && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// fromJSON returns the tokens of an indented JSON value, if the body is an object or a list.
// Numbers stay as they are written.
func fromJSON(body []byte) ([]Token, bool) {
	var indented bytes.Buffer
	if !isJSON(body) || json.Indent(&indented, bytes.TrimSpace(body), "", "  ") != nil {
		return nil, false
	}
	text, note := cut(indented.Bytes(), Limit)
	if !utf8.ValidString(text) {
		return nil, false
	}
	tokens := tokensOf(text)
	if note != "" {
		tokens = append(tokens, Token{"", "\n… " + note})
	}
	return tokens, true
}

// tokensOf cuts indented JSON into pieces that can be coloured.
func tokensOf(text string) (tokens []Token) {
	for len(text) > 0 {
		n, class := 1, "punct"
		switch c := text[0]; {
		case c == '"':
			n = jsonscan.StringEnd(text)
			class = "string"
			if strings.HasPrefix(text[n:], ":") {
				class = "key"
			}
		case c == '-' || c >= '0' && c <= '9':
			n, class = prefixLength(text, "+-.eE0123456789"), "number"
		case c >= 'a' && c <= 'z':
			n, class = prefixLength(text, "abcdefghijklmnopqrstuvwxyz"), "word"
		default:
			n = prefixLength(text, "{}[]:, \n")
			n = max(n, 1)
		}
		tokens = append(tokens, Token{class, text[:n]})
		text = text[n:]
	}
	return tokens
}

func prefixLength(text, of string) int {
	return len(text) - len(strings.TrimLeft(text, of))
}
