// Package gzipped writes HTTP responses, compressed with gzip for clients that accept it.
package gzipped

import (
	"compress/gzip"
	"net/http"
	"strings"
	"sync"
)

// Smallest is the minimum length in bytes of responses that are compressed. A shorter
// response fits in one packet.
const Smallest = 1 << 10

// Write writes a response. The caller sets its headers, except Content-Encoding and Vary.
// A text must not contain both a secret and input from another party, because its
// compressed size reveals whether they are similar.
func Write(w http.ResponseWriter, r *http.Request, status int, text []byte) {
	w.Header().Add("Vary", "Accept-Encoding")
	if len(text) < Smallest || !accepted(r.Header) {
		w.WriteHeader(status)
		w.Write(text) // the caller sets the content type
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	z := writers.Get().(*gzip.Writer)
	defer writers.Put(z)
	z.Reset(w)
	z.Write(text)
	z.Close()
}

// writers reuses writers of about a megabyte each.
var writers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// accepted reports whether a request accepts gzip. It ignores weights other than 0.
func accepted(h http.Header) bool {
	for one := range strings.SplitSeq(h.Get("Accept-Encoding"), ",") {
		coding, weight, _ := strings.Cut(strings.ReplaceAll(one, " ", ""), ";")
		if strings.EqualFold(coding, "gzip") {
			return strings.Trim(weight, "q=0.") != "" || weight == ""
		}
	}
	return false
}
