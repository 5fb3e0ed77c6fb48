package decode

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/beanpole-mq/beanpole/internal/jsonscan"
)

// ErrShape means that an edited body cannot be encoded again.
var ErrShape = errors.New("PHP data: you can change values, but not keys or types")

// Edit returns a body as editable text, and its format. Encodings are removed. The format
// is JSON, including PHP's serialize and structures inside strings, or text. ok is false
// for all other bodies.
func Edit(body []byte) (text, as string, ok bool) {
	if len(body) > Limit {
		return "", "", false
	}
	inner, packs := unpackAll(body, Limit, newBudget())
	if shown, ok := opened(inner, 0, newBudget()); ok && (isJSON(inner) || bytes.HasPrefix(inner, []byte("a:")) || bytes.HasPrefix(inner, []byte("O:"))) {
		var out bytes.Buffer
		if json.Indent(&out, bytes.TrimSpace(shown), "", "  ") == nil {
			return out.String(), named("JSON", packs), true
		}
	}
	return string(inner), named("text", packs), utf8.Valid(inner) && !bytes.ContainsAny(inner, "\x00\r")
}

func named(what string, packs []string) string {
	return strings.Join(append([]string{what}, packs...), " in ")
}

// Pack returns the body with the edited text of Edit, in its original encoding.
func Pack(body []byte, text string) ([]byte, error) {
	inner, packs := unpackAll(body, Limit, newBudget())
	_, as, ok := Edit(body)
	if !ok {
		return nil, errors.New("this body cannot be edited")
	}
	edited := []byte(text)
	packed := edited
	if strings.HasPrefix(as, "JSON") {
		err := notJSON(text)
		if err != nil {
			return nil, err
		}
		if packed, err = packStructure(inner, edited, 0); err != nil {
			return nil, err
		}
	}
	packed = packAgain(body, packed, packs)
	if again, _, ok := Edit(packed); !ok || !sameJSON(again, text) && again != text {
		return nil, ErrShape
	}
	return packed, nil
}

// notJSON returns the position and the reason if a text is not JSON.
func notJSON(text string) error {
	var v any
	err := json.Unmarshal([]byte(text), &v)
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		before := text[:min(int(wrong.Offset), len(text))]
		line := strings.Count(before, "\n") + 1
		return fmt.Errorf("not JSON: line %d, column %d: %w", line, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]), err)
	}
	return err
}

func sameJSON(a, b string) bool {
	x := compact([]byte(a))
	return x != nil && bytes.Equal(x, compact([]byte(b)))
}

// packAgain encodes data, starting with the innermost encoding.
func packAgain(body, inner []byte, packs []string) []byte {
	for _, name := range packs {
		var out bytes.Buffer
		var z io.WriteCloser
		switch name {
		case "gzip":
			z = gzip.NewWriter(&out)
		case "zlib":
			z = zlib.NewWriter(&out)
		default: // only the outermost encoding has a known alphabet; the others use the standard alphabet
			encoding := base64.StdEncoding
			if bytes.ContainsAny(body, "-_") && !bytes.ContainsAny(body, "+/") {
				encoding = base64.URLEncoding
			}
			z = base64.NewEncoder(encoding, &out)
		}
		z.Write(inner) // a write to memory cannot fail
		z.Close()
		inner = out.Bytes()
	}
	return inner
}

// packStructure returns text with its values replaced by those of the edited JSON.
func packStructure(text, edited []byte, depth int) ([]byte, error) {
	inner, packs := unpackAll(text, Limit, newBudget())
	if isJSON(inner) {
		packed, err := packJSON(inner, edited, depth)
		if err != nil {
			return nil, err
		}
		if depth > 0 || bytes.Equal(inner, compact(inner)) {
			packed = compact(packed)
		}
		return packAgain(text, packed, packs), nil
	}
	php := phpReader{in: inner, inside: depth}
	_, hasSlashes := fromPHP(inner)
	if hasSlashes = !hasSlashes; hasSlashes {
		php.in = withoutSlashes(inner)
	}
	if !php.value(edited, 0) {
		return nil, ErrShape
	}
	packed := php.packed.String()
	if hasSlashes {
		packed = slashes.Replace(packed)
	}
	return packAgain(text, []byte(packed), packs), nil
}

// slashes escapes like PHP's addslashes.
var slashes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `'`, `\'`, "\x00", `\0`)

// packJSON returns the edited JSON. Strings that were decoded in the original are encoded
// again.
func packJSON(original, edited json.RawMessage, depth int) (json.RawMessage, error) {
	original, edited = bytes.TrimSpace(original), bytes.TrimSpace(edited)
	if len(original) == 0 || len(edited) == 0 {
		return edited, nil
	}
	isOpen := edited[0] == '{' || edited[0] == '['
	if original[0] == '"' && isOpen {
		if _, ok := insideOf(string(original), depth, newBudget()); !ok {
			return edited, nil
		}
		var s string
		if err := json.Unmarshal(original, &s); err != nil {
			return nil, err
		}
		packed, err := packStructure([]byte(s), edited, depth+1)
		return jsonText(string(packed)), err
	}
	if !isOpen || original[0] != edited[0] {
		return edited, nil
	}
	if _, ok := withInside(original, depth, newBudget()); !ok {
		return edited, nil
	}
	byName := make(map[string]json.RawMessage)
	n := 0
	for key, value := range jsonscan.Members(original) {
		byName[memberName(key, n)], n = value, n+1
	}
	var out bytes.Buffer
	n = 0
	for key, value := range jsonscan.Members(edited) {
		out.WriteByte([]byte{edited[0], ','}[min(n, 1)])
		if edited[0] == '{' {
			out.Write(key)
			out.WriteByte(':')
		}
		one := value
		if before, ok := byName[memberName(key, n)]; ok {
			var err error
			if one, err = packJSON(before, value, depth); err != nil {
				return nil, err
			}
		}
		out.Write(one)
		n++
	}
	if n == 0 {
		return edited, nil
	}
	out.WriteByte(edited[len(edited)-1])
	return out.Bytes(), nil
}

// memberName identifies a member of an object, or an element of an array by its index.
func memberName(key json.RawMessage, n int) string {
	if len(key) == 0 {
		return strconv.Itoa(n)
	}
	var s string
	json.Unmarshal(key, &s) // key is valid
	return s
}

// pack writes a scalar in PHP's format. raw is the original text, shown its JSON, and
// edited the new JSON.
func (p *phpReader) pack(raw, shown []byte, edited json.RawMessage) bool {
	if sameJSON(string(shown), string(edited)) {
		p.packed.Write(raw)
		return true
	}
	var s string
	switch kind := raw[0]; {
	case kind == 's' && json.Unmarshal(edited, &s) == nil:
	case kind == 's' && json.Unmarshal(shown, &s) == nil:
		packed, err := packStructure([]byte(s), edited, p.inside+1)
		if s = string(packed); err != nil {
			return false
		}
	case kind == 'b' && (string(edited) == "true" || string(edited) == "false"):
		fmt.Fprintf(&p.packed, "b:%d;", map[string]int{"true": 1, "false": 0}[string(edited)])
		return true
	case kind == 'i' || kind == 'd':
		_, err := strconv.ParseInt(string(edited), 10, 64)
		_, bad := strconv.ParseFloat(string(edited), 64)
		fmt.Fprintf(&p.packed, "%c:%s;", kind, edited)
		return bad == nil && (kind == 'd' || err == nil)
	default:
		return false
	}
	fmt.Fprintf(&p.packed, "s:%d:\"%s\";", len(s), s)
	return true
}
