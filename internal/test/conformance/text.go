package conformance

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The escapes in a > or < line are \\ \r \n \t \xHH. In a reply, \* is a literal star,
// and a star without a backslash matches any bytes of the line.

// unescape returns the bytes for the text of a > line.
func unescape(text string) ([]byte, error) {
	var data []byte
	for text != "" {
		b, rest, err := unescapeByte(text)
		if err != nil {
			return nil, err
		}
		data, text = append(data, b), rest
	}
	return data, nil
}

func unescapeByte(text string) (b byte, rest string, err error) {
	if text[0] != '\\' {
		return text[0], text[1:], nil
	}
	if len(text) >= 2 {
		switch text[1] {
		case '\\', '*':
			return text[1], text[2:], nil
		case 'r':
			return '\r', text[2:], nil
		case 'n':
			return '\n', text[2:], nil
		case 't':
			return '\t', text[2:], nil
		case 'x':
			if len(text) >= 4 {
				n, err := strconv.ParseUint(text[2:4], 16, 8)
				return byte(n), text[4:], err
			}
		}
	}
	return 0, "", fmt.Errorf("%q: unknown escape", text)
}

// escape is the inverse of unescape: it returns the text of a < line that matches only
// data.
func escape(data []byte) string {
	var b strings.Builder
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == '\\' || r == '*':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == utf8.RuneError && size == 1, !unicode.IsPrint(r), r == ' ' && i == len(data)-1:
			for _, c := range data[i : i+size] {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		default:
			b.WriteRune(r)
		}
		i += size
	}
	switch text := b.String(); text {
	case "(nothing)", "(closed)", "OK list", "OK dict", "OK dict all":
		return fmt.Sprintf(`\x%02x%s`, text[0], text[1:])
	default:
		return text
	}
}

// matches reports whether data matches the pattern of a < line.
func matches(pattern string, data []byte) (bool, error) {
	var literals [][]byte // the texts between the stars
	var cur []byte
	for text := pattern; text != ""; {
		if text[0] == '*' {
			literals, cur, text = append(literals, cur), nil, text[1:]
			continue
		}
		b, rest, err := unescapeByte(text)
		if err != nil {
			return false, err
		}
		cur, text = append(cur, b), rest
	}
	if literals == nil {
		return bytes.Equal(cur, data), nil
	}
	data, ok := bytes.CutPrefix(data, literals[0])
	if !ok {
		return false, nil
	}
	if data, ok = bytes.CutSuffix(data, cur); !ok {
		return false, nil
	}
	for _, literal := range literals[1:] {
		i := bytes.Index(data, literal)
		if i < 0 {
			return false, nil
		}
		data = data[i+len(literal):]
	}
	return true, nil
}

// parsePieces reads quoted strings, each with an optional count: "a"*223 "\r\n".
func parsePieces(text string) ([]byte, error) {
	var data []byte
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimLeft(text, " ") {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%s: a quoted string must come next", text)
		}
		piece, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, err
		}
		text = text[len(quoted):]
		count := 1
		if strings.HasPrefix(text, "*") {
			var digits string
			digits, text, _ = strings.Cut(text[1:], " ")
			if count, err = strconv.Atoi(digits); err != nil || count < 0 {
				return nil, fmt.Errorf("%q is not a count", digits)
			}
		}
		data = append(data, strings.Repeat(piece, count)...)
	}
	return data, nil
}
