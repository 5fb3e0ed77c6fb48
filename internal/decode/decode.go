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
	maxOpened   = 512 << 10 // bytes that may be unpacked of all that is packed in a body
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
	views := structured(body)
	inner, packs := unpackAll(body, unpackLimit, &budget{unpackLimit})
	if inside, ok := fromBase64(body); ok && len(packs) == 0 { // MessagePack, perhaps; as one view of several it may be a mistake
		inner, packs = inside, []string{"base64"}
	}
	if len(packs) > 0 {
		within := structured(inner)
		if len(within) == 0 && utf8.Valid(inner) && printable(inner) {
			within = append(within, plain(inner))
		}
		for _, v := range within {
			views = append(views, v.in(packs))
		}
	}
	if utf8.Valid(body) {
		views = append(views, plain(body))
	}
	for _, v := range views {
		for i := range v.Tokens {
			v.Tokens[i].Text = visible(v.Tokens[i].Text)
		}
	}
	shown, note := cut(body, maxHex)
	return append(views, View{"hex", "Hex", note, []Token{{"", hex.Dump([]byte(shown))}}})
}

// plain returns the view of a text.
func plain(text []byte) View {
	shown, note := cut(text, Limit)
	return View{"text", "Text", note, []Token{{"", shown}}}
}

// in returns the view of something that was unpacked.
func (v View) in(packs []string) View {
	how := strings.Join(packs, " in ")
	note := strings.TrimSuffix("unpacked from "+how+"; "+v.Note, "; ")
	return View{strings.Join(packs, "-") + "-" + v.Name, v.Title + " in " + how, note, v.Tokens}
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
	return unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && !strings.ContainsRune("\n\t\u200d", c)
}

// structured returns the views of a body that has a structure.
func structured(body []byte) (views []View) {
	add := func(name, title string, text []byte) {
		tokens, ok := fromJSON(text)
		if !ok {
			return
		}
		if inside, ok := withInside(text, 0, newBudget()); ok {
			if opened, ok := fromJSON(inside); ok {
				views = append(views, View{name + "-opened", "Opened", "PHP, JSON and base64 inside of strings are shown opened", opened})
			}
		}
		views = append(views, View{name, title, "", tokens})
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

// unpack returns the data that is packed in a body, up to a limit, and the kind of packing.
// The kind is empty if nothing is packed in it, or the limit is used up.
func unpack(body []byte, limit int) (inside []byte, how string) {
	if limit <= 0 {
		return nil, ""
	}
	var z io.Reader
	var err error
	switch {
	case bytes.HasPrefix(body, []byte{0x1f, 0x8b}):
		how = "gzip"
		z, err = gzip.NewReader(bytes.NewReader(body))
	case len(body) >= 6 && body[0] == 0x78: // or a text that begins with x
		how = "zlib"
		z, err = zlib.NewReader(bytes.NewReader(body))
	}
	if how != "" && err == nil {
		if inside, err = io.ReadAll(io.LimitReader(z, int64(limit))); err == nil && len(inside) > 0 {
			return inside, how
		}
	}
	if inside, ok := fromBase64(body); ok {
		return inside, "base64"
	}
	return nil, ""
}

// maxPacks is how often a body is unpacked: gzip may have itself in it.
const maxPacks = 4

// A budget is the number of bytes that may still be unpacked of a body. A job of 60 kB can
// have hundreds of strings that each unpack to a megabyte.
type budget struct{ left int }

func newBudget() *budget { return &budget{maxOpened} }

// unpackAll returns the readable data in a body, and the kinds of packing around it, the
// innermost first. It unpacks each kind up to a limit, and to the end of the budget.
func unpackAll(body []byte, limit int, b *budget) (inner []byte, packs []string) {
	inner = body
	var all []string
	for range maxPacks {
		inside, how := unpack(body, min(limit, b.left))
		if how == "" {
			break
		}
		b.left -= len(inside)
		body, all = inside, append([]string{how}, all...)
		if isReadable(inside, how) {
			inner, packs = body, all
		}
	}
	return inner, packs
}

// isReadable reports whether what was unpacked is something. A word that only looks like base64 may become anything, also
// MessagePack.
func isReadable(inside []byte, how string) bool {
	if how != "base64" {
		if _, ok := fromMessagePack(inside); ok {
			return true
		}
	}
	_, isPHP := fromPHP(inside)
	return isPHP || isJSON(inside) || utf8.Valid(inside) && printable(inside)
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
	return !bytes.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' && c != '\r' })
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
