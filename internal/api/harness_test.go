package api

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/memnet"
	"github.com/beanpole-mq/beanpole/internal/op"
	"github.com/beanpole-mq/beanpole/internal/policy"
	"github.com/beanpole-mq/beanpole/internal/schedule"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// document is the parsed description.
var document = sync.OnceValue(func() *openapi3.T {
	doc, err := openapi3.NewLoader().LoadFromData(description)
	if err != nil {
		panic(err)
	}
	return doc
})

type rig struct {
	*API
	t    *testing.T
	eng  *engine.Engine
	net  *memnet.Listener
	log  *bytes.Buffer
	seen map[string]bool // operations that have succeeded at least once
}

func start(t *testing.T, opt Options) *rig {
	return startWith(t, opt, server.Options{}, engine.Options{}, broker.Options{})
}

func startWith(t *testing.T, opt Options, sopt server.Options, eopt engine.Options, bopt broker.Options) *rig {
	t.Helper()
	if eopt.Policies == nil {
		eopt.Policies, _ = policy.New([]policy.Config{{Tubes: []string{"*"}, Settings: map[string]any{"max-releases": "9"}}})
	}
	eopt.Epoch, eopt.CompileSchedule = time.Now().UnixNano(), schedule.CompileText
	eng := engine.New(eopt)
	b := broker.New(eng, bopt)
	r := &rig{t: t, eng: eng, net: memnet.Listen(), log: new(bytes.Buffer), seen: make(map[string]bool)}
	opt.Server = server.New(b, sopt)
	opt.Logger = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}))
	r.API = New(b, opt)
	served := make(chan error, 1)
	go func() { served <- opt.Server.Serve(r.net, server.ListenOptions{}) }()
	t.Cleanup(func() {
		r.API.Close()
		opt.Server.Shutdown(t.Context())
		if err := <-served; err != nil {
			t.Error(err)
		}
		b.Close()
		if err := eng.Check(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) in(f func(e *engine.Engine, now int64)) {
	r.t.Helper()
	if err := r.broker.Call(f); err != nil {
		r.t.Fatal(err)
	}
}

// talk sends lines on a new connection and reads the same number of lines as replies.
func (r *rig) talk(lines ...string) net.Conn {
	r.t.Helper()
	nc, err := r.net.Dial()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { nc.Close() })
	for _, line := range lines {
		if _, err := io.WriteString(nc, line+"\r\n"); err != nil {
			r.t.Fatal(err)
		}
		if line == "reserve" {
			continue
		}
		reply := make([]byte, 1)
		for reply[0] != '\n' {
			if _, err := nc.Read(reply); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	return nc
}

func newRequest(method, path, body string) *http.Request {
	h := httptest.NewRequest(method, Prefix+path, strings.NewReader(body))
	if body != "" {
		h.Header.Set("Content-Type", "application/json")
	}
	return h
}

// do sends a request, and checks the request and the response against the description.
func (r *rig) do(method, path, body string) (status int, response string) {
	r.t.Helper()
	return r.send(newRequest(method, path, body), body)
}

func (r *rig) send(h *http.Request, body string) (status int, response string) {
	r.t.Helper()
	w := httptest.NewRecorder()
	r.ServeHTTP(w, h)
	r.conforms(h, body, w)
	return w.Code, strings.TrimSuffix(w.Body.String(), "\n")
}

// want sends a request, checks the status, and decodes the response into a value unless
// it is nil.
func (r *rig) want(status int, method, path, body string, into any) string {
	r.t.Helper()
	code, response := r.do(method, path, body)
	if code != status {
		r.t.Fatalf("%s %s %s: %d %s, want %d", method, path, body, code, response, status)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(response), into); err != nil {
			r.t.Fatal(err)
		}
	}
	return response
}

// sweep runs a task on jobs of a tube, and returns it after its end.
func (r *rig) sweep(tube, body string) (task admin.Task) {
	r.t.Helper()
	r.want(202, "POST", "/tubes/"+tube+"/tasks?wait=60", body, &task)
	if task.Ended == "" {
		r.t.Fatalf("the task has not ended: %+v", task)
	}
	return task
}

// stream imports jobs from JSON lines and returns the response. The import must succeed.
func (r *rig) stream(path, lines string) string {
	r.t.Helper()
	code, response := r.sendStream(path, lines)
	if code != http.StatusOK {
		r.t.Fatalf("%s: %d %s", path, code, response)
	}
	return response
}

func (r *rig) sendStream(path, lines string) (status int, response string) {
	r.t.Helper()
	h := newRequest("POST", path, lines)
	h.Header.Set("Content-Type", ndjson)
	return r.send(h, lines)
}

// conforms fails the test if a response violates the description, or if an invalid
// request was served.
func (r *rig) conforms(h *http.Request, body string, w *httptest.ResponseRecorder) {
	r.t.Helper()
	_, pattern := r.mux.Handler(h)
	method, path, ok := strings.Cut(pattern, " "+Prefix)
	if !ok { // the request matches no operation
		if w.Code == http.StatusTemporaryRedirect {
			return // a redirect from /a/./b to /a/b, as from ServeMux
		}
		if kind := w.Header().Get("Content-Type"); w.Code < 400 || kind != "application/problem+json" {
			r.t.Errorf("%s %s: %d %s", h.Method, h.URL, w.Code, kind)
		}
		return
	}
	item := document().Paths.Value(path)
	in := &openapi3filter.RequestValidationInput{
		Request:    h.Clone(h.Context()),
		PathParams: pathParameters(path, h),
		Route:      &routers.Route{Spec: document(), Path: path, PathItem: item, Method: method, Operation: item.GetOperation(method)},
		Options:    &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true},
	}
	if w.Code < 300 {
		r.seen[in.Route.Operation.OperationID] = true
		in.Request.Body = io.NopCloser(strings.NewReader(body))
		if err := openapi3filter.ValidateRequest(h.Context(), in); err != nil {
			r.t.Errorf("%s %s %s was served, but violates openapi.yaml: %v", h.Method, h.URL, body, err)
		}
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: w.Code, Header: w.Header(), Options: in.Options}
	out.SetBodyBytes(w.Body.Bytes())
	if err := openapi3filter.ValidateResponse(h.Context(), out); err != nil {
		r.t.Errorf("%s %s: the response violates openapi.yaml: %v\n%s", h.Method, h.URL, err, w.Body)
	}
}

func pathParameters(path string, h *http.Request) map[string]string {
	params := make(map[string]string)
	values := strings.Split(strings.TrimPrefix(h.URL.EscapedPath(), Prefix), "/")
	for i, segment := range strings.Split(path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			params[strings.TrimSuffix(name, "}")] = op.TubeOf(strings.NewReplacer("%2F", "/", "%3B", ";").Replace(values[i]))
		}
	}
	return params
}
