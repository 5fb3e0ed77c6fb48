package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"time"
)

// RemoteOptions say where another beanpole's admin pages are.
type RemoteOptions struct {
	URL   string                 // with the scheme and the host only
	Token func() (string, error) // returns the token of a request. Nil: none is sent
	TLS   *tls.Config            // nil: as the system has it
}

// remote is another beanpole, by its API.
type remote struct {
	opt     RemoteOptions
	http    http.Client
	largest int64 // bytes of an answer that are taken
}

// NewRemote returns another beanpole. Nothing is connected yet.
func NewRemote(opt RemoteOptions) Other {
	return &remote{opt: opt, largest: largestAnswer, http: http.Client{
		Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: dialPatience}).DialContext, TLSHandshakeTimeout: dialPatience, TLSClientConfig: opt.TLS,
			ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute,
		},
		// Where it is, the configuration says, and nobody else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (s *remote) close() { s.http.CloseIdleConnections() }

// lasts reports whether an operation takes as long as there are jobs.
func lasts(op *operation) bool {
	switch op.id {
	case "exportTube", "exportAll", "getJournal", "importTube", "importAll", "clearTube", "moveJobs":
		return true
	}
	return false
}

// do implements Other: it sends the request on, with nothing of the client but what it asks for.
func (s *remote) do(r *request) (reply, error) {
	ctx, cancel := r.http.Context(), context.CancelFunc(func() {})
	if !lasts(r.op) {
		ctx, cancel = context.WithTimeoutCause(ctx, otherPatience, errSlow)
	}
	defer cancel()
	var body io.Reader
	if r.http.ContentLength > 0 || r.op.brings == aLotOfJobs {
		body = r.http.Body
	}
	h, err := http.NewRequestWithContext(ctx, r.http.Method, s.opt.URL+r.http.URL.RequestURI(), body)
	if err != nil {
		return reply{}, err
	}
	if h.ContentLength = r.http.ContentLength; r.op.brings == aLotOfJobs {
		h.ContentLength = -1
	}
	if kind := r.http.Header.Get("Content-Type"); kind != "" {
		h.Header.Set("Content-Type", kind)
	}
	if err := s.identify(h); err != nil {
		return reply{}, err
	}
	answer, err := s.http.Do(h) // #nosec G704 -- to an address of the configuration
	if err != nil {
		return reply{}, reasonOf(ctx, err)
	}
	if answer.StatusCode < 300 && lasts(r.op) && r.http.Method == http.MethodGet {
		return reply{stream: func(w http.ResponseWriter) { passOn(w, answer) }}, nil
	}
	defer answer.Body.Close()
	return s.read(ctx, r, answer)
}

// identify adds the token to a request.
func (s *remote) identify(h *http.Request) error {
	if s.opt.Token == nil {
		return nil
	}
	token, err := s.opt.Token()
	if err == nil {
		h.Header.Set("Authorization", "Bearer "+token)
	}
	return err
}

var errSlow = fmt.Errorf("there is no answer within %v", otherPatience)

// reasonOf returns why a request has failed, without its URL.
func reasonOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errSlow) {
		return cause
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// passOn streams an answer.
func passOn(w http.ResponseWriter, answer *http.Response) {
	defer answer.Body.Close()
	for _, name := range []string{"Content-Type", "Content-Disposition"} {
		w.Header().Set(name, answer.Header.Get(name))
	}
	if _, err := io.Copy(w, answer.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// largestAnswer is more bytes than a page of the API has.
const largestAnswer = 64 << 20

// read reads an answer.
func (s *remote) read(ctx context.Context, r *request, answer *http.Response) (rep reply, err error) {
	text, err := io.ReadAll(io.LimitReader(answer.Body, s.largest+1))
	if err != nil {
		return rep, reasonOf(ctx, err)
	}
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch {
	case int64(len(text)) > s.largest:
		return rep, fmt.Errorf("its answer has more than %d bytes", s.largest)
	case answer.StatusCode >= 400 && kind == "application/problem+json":
		return rep, problemOf(text)
	case answer.StatusCode >= 300:
		return rep, fmt.Errorf("that is not the admin pages of a beanpole: %s", answer.Status)
	}
	rep.status = answer.StatusCode
	switch {
	case len(text) == 0:
		return rep, nil
	case kind == "application/octet-stream":
		rep.raw, rep.isRaw = text, true
		return rep, nil
	case kind != "application/json" || !json.Valid(text):
		return rep, fmt.Errorf("that is not the admin pages of a beanpole: it answers with %.40q", kind)
	}
	if r.op.id == "getMe" {
		me := new(Me)
		rep.body = me
		return rep, json.Unmarshal(text, me)
	}
	rep.body = json.RawMessage(bytes.TrimSpace(text))
	return rep, nil
}

// problemOf returns what the other server answers to a request that it does not serve.
func problemOf(text []byte) error {
	p := new(problem)
	if err := json.Unmarshal(text, p); err != nil || p.Status < 400 || p.Status > 599 { // others cannot be passed on
		return errors.New("its answer cannot be read")
	}
	if p.Status == http.StatusUnauthorized { // it is we who are not known there, and not the client here
		return errors.New("it wants a token that it knows: token-file of the configuration names the file that has it")
	}
	return p
}
