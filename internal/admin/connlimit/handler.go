package connlimit

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// guard puts the Listener in front of a handler.
func (d *Listener) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := r.Context().Value(connKey{}).(*conn)
		if !ok {
			h.ServeHTTP(w, r)
			return
		}
		ok = c.begin(d.opt.Probe != nil && d.opt.Probe(r))
		defer c.end()
		b := &body{ReadCloser: r.Body, conn: c, control: http.NewResponseController(w), left: r.ContentLength}
		r.Body = b
		reply := &response{ResponseWriter: w, body: b}
		defer reply.end()
		if !ok {
			reply.Header().Set("Retry-After", "1")
			http.Error(reply, "too many requests are being served", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(reply, r)
	})
}

// crowded reports whether as many requests are being served as may be, of all machines or
// of one. Those that wait for their client do not count. The caller holds d.mu.
func (d *Listener) crowded(machine netip.Addr) bool {
	all, same := 0, 0
	for c := range d.inside {
		if c.waits() || !c.counts {
			continue
		}
		all++
		if c.machine == machine {
			same++
		}
	}
	return all >= d.opt.Requests || machine.IsValid() && same >= d.opt.share()
}

// A body is that of a request.
type body struct {
	io.ReadCloser
	conn    *conn
	control *http.ResponseController
	left    int64 // bytes that have not been read; -1: their number is not known
}

// Read implements io.Reader. The client has some seconds for each part.
func (b *body) Read(p []byte) (int, error) {
	defer b.conn.block()()
	b.control.SetReadDeadline(time.Now().Add(stallTimeout))
	n, err := b.ReadCloser.Read(p)
	if b.left > 0 {
		b.left -= int64(n)
	}
	if errors.Is(err, io.EOF) {
		b.left = 0
	}
	return n, err
}

// A response ends the connection if the body of its request was not read whole. The http
// package would read the rest first, for as long as the client likes.
type response struct {
	http.ResponseWriter
	body  *body
	begun bool
}

// begin is called before the header is written.
func (w *response) begin() {
	if w.begun {
		return
	}
	w.begun = true
	if w.body.left != 0 {
		endAfter(w.ResponseWriter)
	}
}

// endAfter says that a connection is to be closed after a response. The way to tell the http
// package, which then also leaves the client time to read it, is a body that is
// too large.
func endAfter(w http.ResponseWriter) {
	http.MaxBytesReader(w, io.NopCloser(strings.NewReader("x")), 0).Read(make([]byte, 1))
}

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	w.begin()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(p)
}

// FlushError is for http.ResponseController.
func (w *response) FlushError() error {
	w.begin()
	return w.body.control.Flush()
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// end is called after the handler.
func (w *response) end() {
	w.begin()
	if w.body.left != 0 {
		w.body.control.SetReadDeadline(time.Unix(1, 0))
	}
}
