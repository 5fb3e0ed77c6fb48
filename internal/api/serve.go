package api

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/gzipped"
)

// handler returns the HTTP handler of an operation. to is nil for this server; only tests
// use other servers.
func (a *API) handler(o *operation, to *upstream) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, h *http.Request) {
		h.Body = http.MaxBytesReader(w, h.Body, a.maxBody(o))
		r := &request{api: a, op: o, ctx: h.Context(), source: &httpSource{h, o}, upstream: to}
		out, err := r.identified(h)
		if err != nil {
			writeProblem(w, err)
			return
		}
		o.write(w, h, out)
	})
}

const (
	// smallBody is the space for the other members of a request with a job.
	smallBody = 64 << 10

	// Base64 enlarges a job by a third. A job with many escapes can be even larger in
	// JSON, and must be sent in base64.
	jsonPerByte = 2
)

func (a *API) maxBody(o *operation) int64 {
	if o.plan.Streams() {
		return math.MaxInt64
	}
	return max(maxTaskBytes, a.maxJSON())
}

// maxJSON is the maximum size of a job in JSON in bytes.
func (a *API) maxJSON() int64 { return smallBody + jsonPerByte*int64(a.opt.Server.MaxJobSize()) }

// identified performs the operation of a request with a known identity.
func (r *request) identified(h *http.Request) (out any, err error) {
	known := false
	r.caller.Address = h.RemoteAddr
	if m, ok := h.Context().Value(memberKey{}).(*access.Caller); ok {
		r.fromMember, r.caller = true, *m
		r.caller.Identity, known = r.api.opt.IdentifyByName(h.Header.Get(headerIdentity), m.IP())
	} else {
		r.caller.Identity, known = r.api.opt.Identify(h)
	}
	if !known {
		r.api.opt.Server.Refused(r.caller.Address, "", r.op.ID+" without a valid token")
		return nil, Unknown(h, &r.api.guesses)
	}
	r.upload = &upload{ReadCloser: h.Body}
	h.Body = r.upload
	defer func() {
		if r.upload.end != nil {
			r.upload.end()
		}
	}()
	size := r.api.maxJSON() // maximum size in memory, which counts toward no limit
	if h.ContentLength >= 0 {
		size = min(size, h.ContentLength)
	}
	if size > maxTaskBytes && !r.op.plan.Streams() { // an import buffers a line
		if err := r.enlarge(); err != nil {
			return nil, err
		}
	}
	return r.run()
}

// A source provides the input of a request. Its methods are called in this order.
type source interface {
	path(in any) error
	query(in any) error
	body(in any) error
}

// An httpSource is an HTTP request.
type httpSource struct {
	*http.Request
	op *operation
}

func (s *httpSource) path(in any) error { return s.op.plan.Path(in, s.PathValue) }

func (s *httpSource) query(in any) error {
	return s.op.plan.Query(in, s.op.ID, s.URL.RawQuery)
}

func (s *httpSource) body(in any) error {
	if s.op.method == http.MethodGet || s.op.method == http.MethodDelete {
		return nil
	}
	return s.op.plan.Body(in, s.Header.Get("Content-Type"), s.ContentLength, s.Body)
}

// write sends the result.
func (o *operation) write(w http.ResponseWriter, h *http.Request, out any) {
	header := w.Header()
	switch out := out.(type) {
	case admin.None:
		w.WriteHeader(o.Status)
	case *admin.Stream:
		defer out.Close()
		header.Set("Content-Type", o.Type)
		header.Set("Content-Disposition", out.Disposition)
		if h.Method == http.MethodHead {
			return
		}
		if err := out.Write(w); err != nil {
			panic(http.ErrAbortHandler) // so that the client detects the incomplete response
		}
	case admin.Bytes:
		header.Set("Content-Type", o.Type)
		header.Set("Content-Disposition", "attachment") // a browser must not display it, because the content can be hostile
		header.Set("Content-Length", strconv.Itoa(len(out)))
		w.WriteHeader(o.Status)
		w.Write(out)
	default:
		text := jsonOf(out)
		if o.method == http.MethodGet {
			header.Set("Content-Type", "application/json")
			gzipped.Write(w, h, http.StatusOK, text)
			return
		}
		if o.Location != "" {
			var made struct{ ID uint64 }
			if json.Unmarshal(text, &made) == nil {
				header.Set("Location", Prefix+o.Location+strconv.FormatUint(made.ID, 10))
			}
		}
		writeJSON(w, "application/json", o.Status, text)
	}
}

func writeJSON(w http.ResponseWriter, kind string, status int, text []byte) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	w.Write(text) // #nosec G705 -- JSON with a content type that says so
}

// jsonOf returns a value as a line of JSON.
func jsonOf(body any) []byte {
	text, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("api: %T cannot be JSON: %v", body, err))
	}
	return append(text, '\n')
}
