package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/internal/admin/api"
)

// A client asks the API within the process.
type client struct{ api http.Handler }

// A problem is what the API answers to a request that it does not serve.
type problem struct {
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Done   uint64 `json:"done"`
}

func (p *problem) Error() string { return p.Detail }

// errUnknown says that nobody knows who asks.
var errUnknown = errors.New("console: the client is not known")

// isStatus reports whether an error is a problem with a status.
func isStatus(err error, status int) bool {
	p, ok := errors.AsType[*problem](err)
	return ok && p.Status == status
}

// call asks for something on behalf of whoever sent a request, and reads the answer into a
// value, if one is given.
func (c client) call(origin *http.Request, method, path string, body, into any) error {
	a, err := c.asked(origin, method, path, body, into)
	if err != nil {
		return err
	}
	return a.read()
}

// send asks for something and returns the answer, or a problem.
func (c client) send(origin *http.Request, method, path string, body any) (*answer, error) {
	return c.asked(origin, method, path, body, nil)
}

func (c client) asked(origin *http.Request, method, path string, body, into any) (*answer, error) {
	var content io.Reader
	length := 0
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content, length = bytes.NewReader(text), len(text)
	}
	r, err := newCall(origin, method, path, content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = int64(length)
	}
	return c.ask(r, into)
}

// ask lets the API answer a request, for a value that the answer will be read into, if there is one.
func (c client) ask(r *http.Request, into any) (*answer, error) {
	a := &answer{status: http.StatusOK, header: make(http.Header), into: into}
	c.api.ServeHTTP(a, r)
	if a.status >= 300 {
		return nil, a.problem()
	}
	return a, nil
}

// tubesAge is how old a list of tubes may be: a page is made once a second, and some have several.
const tubesAge = 900 * time.Millisecond

// newCall returns a request to the API on behalf of whoever has sent another.
func newCall(origin *http.Request, method, path string, content io.Reader) (*http.Request, error) {
	ctx := api.WithAge(api.WithVia(origin.Context(), "console"), tubesAge)
	r, err := http.NewRequestWithContext(ctx, method, api.Prefix+path, content)
	if err != nil {
		return nil, &problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("there can be nothing at %.100q", path)}
	}
	// What identifies the client.
	r.RemoteAddr, r.TLS, r.Host = origin.RemoteAddr, origin.TLS, origin.Host
	for _, name := range []string{"Authorization", "Cookie"} {
		r.Header[name] = origin.Header[name]
	}
	r.RequestURI = r.URL.RequestURI()
	return r, nil
}

// A download passes a stream of the API on, but keeps a problem.
type download struct {
	http.ResponseWriter
	kept *answer // nil: it is passed on
}

// WriteHeader implements http.ResponseWriter.
func (d *download) WriteHeader(status int) {
	if status >= 300 {
		d.kept = &answer{header: make(http.Header), status: status}
		return
	}
	d.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (d *download) Write(p []byte) (int, error) {
	if d.kept != nil {
		return d.kept.Write(p)
	}
	return d.ResponseWriter.Write(p)
}

// An answer keeps what the API writes.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
	into   any  // a pointer to what the answer is wanted as; nil: as it is written
	taken  bool // it is there
}

// Take implements api.Taker: a value of the type that is wanted need not become JSON and be read again, which takes longer than
// all else that is done for a long list.
func (a *answer) Take(body any) bool {
	if a.into == nil {
		return false
	}
	to, from := reflect.ValueOf(a.into).Elem(), reflect.ValueOf(body)
	if from.Kind() == reflect.Pointer && !from.IsNil() {
		from = from.Elem()
	}
	if a.taken = from.Type() == to.Type(); a.taken {
		to.Set(from)
	}
	return a.taken
}

// read reads the answer into the value that it is wanted as, if there is one. Another server may answer anything: what is missing
// is nothing, and what cannot be read is a problem of that server.
func (a *answer) read() error {
	if a.into == nil || a.taken || a.body.Len() == 0 {
		return nil
	}
	if err := json.Unmarshal(a.body.Bytes(), a.into); err != nil {
		return &problem{Status: http.StatusBadGateway, Detail: fmt.Sprintf("the answer of the server cannot be read: %v", err)}
	}
	return nil
}

// problem returns what the answer says, which is none that was wished for.
func (a *answer) problem() error {
	if a.status == http.StatusUnauthorized {
		return errUnknown
	}
	p := &problem{Status: a.status}
	if json.Unmarshal(a.body.Bytes(), p) != nil || p.Detail == "" {
		p.Detail = http.StatusText(a.status)
	}
	return p
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// tubePath is the path of a tube in the API, and of what is below it.
func tubePath(tube, below string) string { return "/tubes/" + api.TubeSegment(tube) + below }

// withQuery adds parameters to a path; those that are empty are left out.
func withQuery(path string, pairs ...string) string {
	v := make(url.Values)
	for pair := range slices.Chunk(pairs, 2) {
		if name, value := pair[0], pair[1]; value != "" {
			v.Set(name, value)
		}
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

func queryEscape(s string) string { return url.QueryEscape(s) }

// curl returns the command that asks the API for the same; empty: the server has no API.
func (r *request) curl(method, path string, body any) string {
	origin := "http://" + r.Host
	if r.TLS != nil {
		origin = "https://" + r.Host
	}
	if other := r.site.other; other != nil {
		if origin = other.URL; origin == "" {
			return ""
		}
	}
	text := "curl -s"
	if method != "GET" && (method != "POST" || body == nil) {
		text += " -X " + method
	}
	target := origin + api.Prefix + path
	text += " " + shellQuote(target)
	if body != nil {
		content, _ := json.Marshal(body)
		text += " -H 'Content-Type: application/json' -d " + shellQuote(string(content))
	}
	return text
}
