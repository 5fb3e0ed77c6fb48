// Package gzipped writes HTTP responses, compressed with gzip for clients that accept it.
package gzipped

import (
	"compress/gzip"
	"mime"
	"net/http"
	"strconv"
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

// accepted reports whether a request accepts gzip (RFC 9110, 12.5.3).
func accepted(h http.Header) (any bool) {
	for one := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		coding, params, err := mime.ParseMediaType(one)
		if err != nil {
			continue
		}
		weight := 1.0
		if q, ok := params["q"]; ok {
			weight, _ = strconv.ParseFloat(q, 64)
		}
		switch coding {
		case "gzip", "x-gzip":
			return weight > 0
		case "*":
			any = weight > 0
		}
	}
	return any
}
