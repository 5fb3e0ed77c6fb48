package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"regexp"

	"github.com/beanpole-mq/beanpole/internal/gzipped"
)

//go:embed static
var staticFiles embed.FS

// assets contains the files to which pages refer. Their URLs contain a part of their
// checksum, so that browsers can cache them forever.
type assets struct {
	urls  map[string]string // by name
	files map[string]*asset // by "SUM/NAME"
}

type asset struct {
	text []byte
	kind string
}

func newAssets() *assets {
	a := &assets{urls: make(map[string]string), files: make(map[string]*asset)}
	entries, err := staticFiles.ReadDir("static")
	if err != nil {
		panic(err) // embedded files cannot fail
	}
	for _, e := range entries {
		text, err := staticFiles.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err)
		}
		text = thinner(text)
		sum := sha256.Sum256(text)
		key := hex.EncodeToString(sum[:8]) + "/" + e.Name()
		a.urls[e.Name()] = Prefix + "static/" + key
		a.files[key] = &asset{text, mime.TypeByExtension(path.Ext(e.Name()))}
	}
	return a
}

var (
	comments = regexp.MustCompile(`(?m)^\s*//.*\n|/\*[^*]*\*/|^\s+`)
	blanks   = regexp.MustCompile(`;?\s*([{}])\s*|([:;,])\s+`)
)

// thinner removes comments, indentation, and the spaces of a style sheet from a file.
func thinner(text []byte) []byte {
	text = bytes.TrimSpace(comments.ReplaceAll(text, nil))
	if bytes.HasPrefix(text, []byte(":root")) {
		text = blanks.ReplaceAll(text, []byte("$1$2"))
	}
	return text
}

func (a *assets) serve(w http.ResponseWriter, r *http.Request) {
	f := a.files[r.PathValue("hash")+"/"+r.PathValue("name")]
	if f == nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	gzipped.Write(w, r, http.StatusOK, f.text)
}
