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

	"github.com/beanpole-mq/beanpole/internal/jsonscan"
)

const (
	// Limit is the maximum number of bytes that are displayed.
	Limit = 256 << 10

	unpackLimit = 8 << 20
	maxOpened   = 512 << 10 // maximum total size of the decoded data in a body
	maxDepth    = 64
	maxHex      = 16 << 10 // maximum number of bytes displayed in hexadecimal
)

// A View is a representation of a body.
type View struct {
	Name, Title string
	Note        string // description of the decoding, or of the part that is not displayed
	Tokens      []Token
}

// A Token is a piece of text. Class is key, string, number, word, punct, or empty.
type Token struct{ Class, Text string }

// Views returns the representations of a body, best first. The last one is always text or
// hexadecimal.
func Views(body []byte) []View {
	views := structured(body)
	inner, packs := unpackAll(body, unpackLimit, &budget{unpackLimit})
	if inside, ok := fromBase64(body); ok && len(packs) == 0 { // possibly MessagePack: only one of several views, because it can be a false match
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
			v.Tokens[i].Text = Visible(v.Tokens[i].Text)
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

// in returns v with the names of the decoded encodings added to its name, title and note.
func (v View) in(packs []string) View {
	how := strings.Join(packs, " in ")
	note := strings.TrimSuffix("unpacked from "+how+"; "+v.Note, "; ")
	return View{strings.Join(packs, "-") + "-" + v.Name, v.Title + " in " + how, note, v.Tokens}
}

// Visible escapes invisible characters, and characters that change the display of other
// characters: controls and direction marks.
func Visible(text string) string {
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

// structured returns the views of structured data.
func structured(body []byte) (views []View) {
	add := func(name, title string, text []byte) {
		tokens, ok := fromJSON(text)
		if !ok {
			return
		}
		if inside, ok := withInside(text, 0, newBudget()); ok {
			if opened, ok := fromJSON(inside); ok {
				views = append(views, View{name + "-opened", "Opened", "PHP, JSON and base64 inside strings are decoded", opened})
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

// unpack decodes a body up to a limit, and returns the encoding. The encoding is empty if
// the body is not encoded, or the limit is 0.
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
	case len(body) >= 6 && body[0] == 0x78: // not a text that starts with x
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

// maxPacks is the maximum number of nested encodings. There must be a limit, because gzip
// data can contain itself.
const maxPacks = 4

// A budget is the number of bytes that can still be decoded for a body. A job of 60 kB
// can contain hundreds of strings that each decode to a megabyte.
type budget struct{ left int }

func newBudget() *budget { return &budget{maxOpened} }

// unpackAll returns the readable data in a body and its encodings, the innermost first.
// It decodes each encoding up to a limit, and within the budget.
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

// isReadable reports whether decoded data makes sense. A word that only looks like base64
// can decode to anything, including MessagePack.
func isReadable(inside []byte, how string) bool {
	if how != "base64" {
		if _, ok := fromMessagePack(inside); ok {
			return true
		}
	}
	_, isPHP := fromPHP(inside)
	return isPHP || isJSON(inside) || utf8.Valid(inside) && printable(inside)
}

// minBase64 is the minimum length of base64. Shorter words can look like base64 by
// chance.
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
		return string(body[:most]), "only the start is shown"
	}
	return string(body), ""
}

func printable(text []byte) bool {
	return !bytes.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' && c != '\r' })
}

// fromJSON returns the tokens of an indented JSON value, if the body is an object or an
// array. Numbers keep their spelling.
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

// tokensOf splits indented JSON into tokens for colors.
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
