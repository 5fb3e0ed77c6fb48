package door

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// guard puts the Door in front of a handler.
func (d *Door) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := r.Context().Value(connKey{}).(*conn)
		if !ok {
			h.ServeHTTP(w, r)
			return
		}
		req, ok := c.begin(d.opt.Probe != nil && d.opt.Probe(r))
		defer req.end()
		b := &body{ReadCloser: r.Body, request: req, control: http.NewResponseController(w), left: r.ContentLength}
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
func (d *Door) crowded(machine netip.Addr) bool {
	all, same := 0, 0
	for c := range d.inside {
		serving := c.serving()
		all += serving
		if c.machine == machine {
			same += serving
		}
	}
	return all >= d.opt.Requests || machine.IsValid() && same >= d.opt.share()
}

// A body is that of a request.
type body struct {
	io.ReadCloser
	request *request
	control *http.ResponseController
	left    int64 // bytes that have not been read; -1: their number is not known
}

// Read implements io.Reader. The client has some seconds for each part.
func (b *body) Read(p []byte) (int, error) {
	defer b.request.block()()
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
//
// What it writes has a deadline of its own. With HTTP/1 that of the connection is enough, but
// with HTTP/2 a client can stop one response alone, and the connection sees nothing of it.
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

// Write implements http.ResponseWriter. The client has some seconds for each part.
func (w *response) Write(p []byte) (n int, err error) {
	w.begin()
	for {
		part := p[n:min(len(p), n+chunk)]
		k, err := w.timed(func() (int, error) { return w.ResponseWriter.Write(part) })
		if n += k; err != nil || n == len(p) {
			return n, err
		}
	}
}

// FlushError is for http.ResponseController.
func (w *response) FlushError() error {
	w.begin()
	_, err := w.timed(func() (int, error) { return 0, w.body.control.Flush() })
	return err
}

// timed calls what waits for the client to read.
func (w *response) timed(write func() (int, error)) (int, error) {
	defer w.body.request.block()()
	w.body.control.SetWriteDeadline(time.Now().Add(stallTimeout))
	defer w.body.control.SetWriteDeadline(time.Time{}) // else it would end a stream of events between two of them
	return write()
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// end is called after the handler. What it has written may still wait in a buffer of the
// http package.
func (w *response) end() {
	w.begin()
	w.body.control.SetWriteDeadline(time.Now().Add(stallTimeout))
	if w.body.left != 0 {
		w.body.control.SetReadDeadline(time.Unix(1, 0))
	}
}
