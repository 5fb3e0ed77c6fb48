package admin

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/internal/adminsocket"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// Prefix is the start of all paths of the API.
const Prefix = "/api/v1"

// A Client calls a server. It has one method for each operation of the API. If the server
// refuses a request, the error is a [*Problem].
type Client struct{ transport Transport }

// A Transport carries an operation to a server. The route is the method and the path. in
// points to the input and out to the result. Either is nil if the operation has none.
type Transport interface {
	Do(ctx context.Context, route string, in, out any) error
}

// On returns a client that uses a transport.
func On(t Transport) *Client { return &Client{t} }

// None is the input of operations without input, and the result of operations without
// result.
type None struct{}

// Do performs the operation of a route, like a Transport.
func (c *Client) Do(ctx context.Context, route string, in, out any) error {
	return c.transport.Do(ctx, route, in, out)
}

// ask is Do for an operation with a result.
func ask[Out any](ctx context.Context, c *Client, route string, in any) (out Out, err error) {
	err = c.Do(ctx, route, in, &out)
	return out, err
}

// Bytes is a result that is not JSON.
type Bytes []byte

// A Stream is a result of any length. Write writes it and must be called only once. Close
// must always be called.
type Stream struct {
	Disposition string // value of the header Content-Disposition
	Write       func(w io.Writer) error
	Close       func()
}

// HTTP is the transport to the admin listener of a server.
type HTTP struct {
	URL    string // scheme and host
	Client http.Client
	Token  func() (string, error) // returns the token for each request; nil sends no token
	Header http.Header            // added to each request
}

// DefaultTimeout limits the time until a response starts. A request can wait up to a
// minute for a task.
const DefaultTimeout = 2 * time.Minute

// dialTimeout limits the time to connect.
const dialTimeout = 10 * time.Second

// New returns a client of the server whose admin API is at addr, an address for
// [NewHTTP]. It does not connect. An empty token is not sent.
func New(addr, token string) (*Client, error) {
	t, err := NewHTTP(addr, nil, DefaultTimeout)
	if err != nil {
		return nil, err
	}
	if token != "" {
		t.Token = func() (string, error) { return token, nil }
	}
	return On(t), nil
}

// NewHTTP returns the transport to the admin API at addr: HOST:PORT, HOST, :PORT of this
// machine, unix:PATH, or a URL with http or https. The default port is 11380. It uses TLS
// if secure is not nil or the URL has https. The server must start its response within
// the timeout. Zero means no timeout.
func NewHTTP(addr string, secure *tls.Config, timeout time.Duration) (*HTTP, error) {
	dialer := &net.Dialer{Timeout: dialTimeout}
	if timeout > 0 {
		dialer.Timeout = min(timeout, dialTimeout)
	}
	transport := &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: secure, ResponseHeaderTimeout: timeout}
	t := &HTTP{Client: http.Client{Transport: transport}}
	path, local := strings.CutPrefix(addr, "unix:")
	switch u, err := url.Parse(addr); {
	case local:
		t.URL = "localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		}
	case err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https"):
		t.URL = strings.TrimSuffix(addr, "/")
		return t, nil
	case addr == "" || strings.Contains(addr, "/"):
		return nil, fmt.Errorf("admin address %q: want HOST:PORT, :PORT of this machine, unix:PATH, or a URL", addr)
	default:
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			host, port = strings.Trim(addr, "[]"), adminsocket.DefaultPort
		}
		t.URL = net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port)
	}
	if secure != nil {
		t.URL = "https://" + t.URL
	} else {
		t.URL = "http://" + t.URL
	}
	return t, nil
}

// A NotAPIError means that the response does not come from beanpole's API.
type NotAPIError string

// Error implements error.
func (e NotAPIError) Error() string {
	return "not the admin API of a beanpole server: " + string(e)
}

// maxAnswer is the limit of a response in bytes. It is larger than any page of
// the API.
const maxAnswer = 64 << 20

// Do implements Transport.
func (t *HTTP) Do(ctx context.Context, route string, in, out any) error {
	method, path, _ := strings.Cut(route, " ")
	var body io.Reader
	kind := ""
	if in != nil {
		path, body, kind = op.PlanOf(reflect.TypeOf(in).Elem()).Request(in, path)
	}
	r, err := http.NewRequestWithContext(ctx, method, t.URL+Prefix+path, body)
	if err != nil {
		return err
	}
	for name, values := range t.Header {
		r.Header[name] = values
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	if t.Token != nil {
		token, err := t.Token()
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := t.Client.Do(r) // #nosec G704 -- to an address that the caller has chosen
	if err != nil {
		return err
	}
	if to, ok := out.(**Stream); ok && answer.StatusCode < 300 {
		*to = streamOf(answer)
		return nil
	}
	defer answer.Body.Close()
	return read(answer, out)
}

func streamOf(answer *http.Response) *Stream {
	return &Stream{
		Disposition: answer.Header.Get("Content-Disposition"),
		Write:       func(w io.Writer) error { _, err := io.Copy(w, answer.Body); return err },
		Close:       func() { answer.Body.Close() },
	}
}

// read decodes a response.
func read(answer *http.Response, out any) error {
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return err
	}
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch {
	case len(text) > maxAnswer:
		return fmt.Errorf("its answer has more than %d bytes", maxAnswer)
	case answer.StatusCode >= 400 && kind == "application/problem+json":
		return problemOf(answer, text)
	case answer.StatusCode >= 300:
		return NotAPIError(answer.Status)
	case out == nil || len(text) == 0 && kind == "":
		return nil
	}
	if to, ok := out.(*Bytes); ok {
		*to = text
		return nil
	}
	if kind == "application/json" && json.Valid(text) {
		return json.Unmarshal(text, out)
	}
	return NotAPIError(fmt.Sprintf("it answers with %.40q", kind))
}

// problemOf returns the error in a response.
func problemOf(answer *http.Response, text []byte) error {
	p := new(Problem)
	if err := json.Unmarshal(text, p); err != nil || p.Status < 400 || p.Status > 599 {
		return NotAPIError("invalid response")
	}
	if seconds, err := strconv.ParseUint(answer.Header.Get("Retry-After"), 10, 31); err == nil {
		p.RetryAfter = time.Duration(seconds) * time.Second
	}
	return p
}
