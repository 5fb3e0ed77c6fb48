package decode

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// Packed data within a JSON string is decoded. Words that only look like base64 are
// rejected cheaply.
func TestOpen(t *testing.T) {
	packed := func(make func(io.Writer) io.WriteCloser, text string) string {
		var b bytes.Buffer
		w := make(&b)
		io.WriteString(w, text)
		w.Close()
		return b.String()
	}
	const text = `{"user":"ada lovelace","of":"london"}`
	for name, inside := range map[string]string{
		"JSON":   text,
		"list":   `["ada lovelace","london"]`,
		"blanks": "\n " + text,
		"PHP":    `a:1:{s:4:"user";s:12:"ada lovelace";}`,
		"object": `O:4:"Mail":1:{s:2:"to";s:12:"ada lovelace";}`,
		"gzip":   packed(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, text),
		"zlib":   packed(func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }, text),
		"again":  base64.StdEncoding.EncodeToString([]byte(text)),
	} {
		word := base64.StdEncoding.EncodeToString([]byte(inside))
		for _, word := range []string{word, strings.ReplaceAll(word, "/", `\/`)} {
			body := fmt.Appendf(nil, `{"id":7,"payload":"%s"}`, word)
			if !bytes.Contains(Open(body), []byte("ada lovelace")) {
				t.Errorf("%s: %s is opened as %s", name, body, Open(body))
			}
		}
	}
	for _, word := range []string{strings.Repeat("x", 60), "d41d8cd98f00b204e9800998ecf8427e", "0123456789012345678901234567"} {
		if mayOpen(fmt.Appendf(nil, `{"id":7,"digest":"%s"}`, word)) {
			t.Errorf("%s is accepted as base64", word)
		}
	}
}

// At most maxOpened bytes of a body are unpacked, even if many strings would unpack to
// more. The other strings are unchanged.
func TestOpenIsBounded(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	fmt.Fprintf(w, `{"x":"%s"}`, strings.Repeat("b", 100_000))
	w.Close()
	word := base64.StdEncoding.EncodeToString(packed.Bytes())
	body := []byte(`["` + strings.Join(slices.Repeat([]string{word}, 100), `","`) + `"]`)
	opened := Open(body)
	if n := bytes.Count(opened, []byte(`{"x":`)); n == 0 || n*100_000 > maxOpened || len(opened) > len(body)+maxOpened {
		t.Errorf("%d strings are opened, and %d bytes", n, len(opened))
	}
	if !bytes.Contains(opened, []byte(word)) {
		t.Error("the other strings are missing")
	}
}
