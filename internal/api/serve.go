package api

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/gzipped"
)

// handler returns what serves an operation to clients of HTTP, here; only tests have others there.
func (a *API) handler(o *operation, to *upstream) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, h *http.Request) {
		h.Body = http.MaxBytesReader(w, h.Body, a.maxBody(o))
		r := &request{api: a, op: o, ctx: h.Context(), source: &httpSource{h, o}, upstream: to, http: true}
		out, err := r.identified(h)
		if err != nil {
			writeProblem(w, err)
			return
		}
		o.write(w, h, out)
	})
}

const (
	// smallBody is how many bytes a request has at most that brings no job.
	smallBody = 64 << 10

	// A job in base64 is a third larger; one with many escapes may be more, but then
	// base64 is for it.
	jsonPerByte = 2
)

func (a *API) maxBody(o *operation) int64 {
	switch {
	case o.plan.Streams():
		return math.MaxInt64
	case o.plan.Field("ids") != nil:
		return maxTaskBytes
	case o.plan.Field("body_base64") != nil:
		return a.maxJSON()
	}
	return smallBody
}

// maxJSON is how long a job may be in JSON, in bytes.
func (a *API) maxJSON() int64 { return smallBody + jsonPerByte*int64(a.opt.Server.MaxJobSize()) }

// identified does what a request asks for, if it is known who sends it.
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
		r.api.opt.Server.Refused(r.caller.Address, "", r.op.ID+" without a token that is known")
		return nil, Unknown(h, &r.api.guesses)
	}
	return r.run()
}

// A source has the input of a request. What is read first is checked first.
type source interface {
	path(in any) error
	query(in any) error

	// body asks whether there is room before it reads; see row.Room.
	body(in any, room func(length int64) (most int64, err error)) error
}

// An httpSource is a request of HTTP.
type httpSource struct {
	*http.Request
	op *operation
}

func (s *httpSource) path(in any) error { return s.op.plan.Path(in, s.PathValue) }

func (s *httpSource) query(in any) error {
	err := s.op.plan.Query(in, s.op.ID, s.URL.RawQuery)
	if match := s.Header.Get("If-Match"); err == nil && s.op.changes() && match != "" && match != "*" {
		err = problemf(http.StatusPreconditionFailed, "If-Match: nothing is changed under a condition, for what has a tag changes by itself: its age, for one")
	}
	return err
}

func (s *httpSource) body(in any, room func(int64) (int64, error)) error {
	if s.op.method == http.MethodGet || s.op.method == http.MethodDelete {
		return nil
	}
	most, err := room(s.ContentLength)
	if err != nil {
		return err
	}
	if most > 0 {
		s.Body = http.MaxBytesReader(nil, s.Body, most)
	}
	return s.op.plan.Body(in, s.Header.Get("Content-Type"), s.ContentLength, s.Body)
}

// write answers a request that was served.
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
			panic(http.ErrAbortHandler) // so that the client sees that it is not whole
		}
	case admin.Bytes:
		header.Set("Content-Type", o.Type)
		header.Set("Content-Disposition", "attachment") // no page of ours: nobody knows what is in it
		header.Set("Content-Length", strconv.Itoa(len(out)))
		w.WriteHeader(o.Status)
		w.Write(out)
	default:
		text := jsonOf(out)
		if o.method == http.MethodGet {
			writeTagged(w, h, text)
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

// tagSeed makes the tags of this process differ from those of another.
var tagSeed = maphash.MakeSeed()

// writeTagged answers with a text, or with 304 if the client has the same text already. The tag is
// weak, because a compressed and a plain answer share it.
func writeTagged(w http.ResponseWriter, h *http.Request, text []byte) {
	tag := fmt.Sprintf(`"%x"`, maphash.Bytes(tagSeed, text))
	w.Header().Set("ETag", "W/"+tag)
	if isAmong(tag, h.Header.Values("If-None-Match")) {
		w.Header().Set("Vary", "Accept-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	gzipped.Write(w, h, http.StatusOK, text)
}

// isAmong reports whether a tag is among those of headers, as RFC 9110 compares them weakly.
func isAmong(tag string, headers []string) bool {
	for one := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}

func writeJSON(w http.ResponseWriter, kind string, status int, text []byte) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	w.Write(text) // #nosec G705 -- JSON with a content type that says so
}

// jsonOf returns a value in a line of JSON.
func jsonOf(body any) []byte {
	text, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("api: %T cannot be JSON: %v", body, err))
	}
	return append(text, '\n')
}
