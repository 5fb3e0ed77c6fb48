package admin

import (
	"bytes"
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

// Prefix is what the paths of the API begin with.
const Prefix = "/api/v1"

// A Client asks a server. Its methods are the operations of the API. An error is a [*Problem] if the server does not do what it is
// asked for.
type Client struct{ transport Transport }

// A Transport brings an operation to a server: in is a pointer to its input, or nil; out is a pointer for its answer, or nil. The route
// is the method and the path.
type Transport interface {
	Do(ctx context.Context, route string, in, out any) error
}

// On returns a client that uses a transport.
func On(t Transport) *Client { return &Client{t} }

// None is the answer where there is none, and what an operation takes that takes nothing.
type None struct{}

// Do does the operation of a route, as a Transport does.
func (c *Client) Do(ctx context.Context, route string, in, out any) error {
	return c.transport.Do(ctx, route, in, out)
}

// ask is Do for an operation that has an answer.
func ask[Out any](ctx context.Context, c *Client, route string, in any) (out Out, err error) {
	err = c.Do(ctx, route, in, &out)
	return out, err
}

// A Bytes is an answer that is no JSON.
type Bytes []byte

// A Stream is an answer of any length. Write writes it, once; Close must be called in any case.
type Stream struct {
	Disposition string // the header of HTTP
	Write       func(w io.Writer) error
	Close       func()
}

// Reader returns what is read instead of written. Its Close is that of the stream.
func (s *Stream) Reader() io.ReadCloser {
	r, w := io.Pipe()
	go func() { w.CloseWithError(s.Write(w)) }()
	return &streamReader{r, s}
}

type streamReader struct {
	*io.PipeReader
	stream *Stream
}

// Close implements io.Closer.
func (r *streamReader) Close() error {
	r.stream.Close()
	return r.PipeReader.Close()
}

// HTTP is the transport to a server by its admin listener.
type HTTP struct {
	URL    string                 // with the scheme and the host only
	Client http.Client            //
	Token  func() (string, error) // returns the token of a request. Nil: none is sent
	Header http.Header            // of each request

	MaxAnswer int64 // bytes of an answer that are taken; 0: 64 MiB
}

// DefaultTimeout is the time that a server has to begin its answer. A task can be waited
// for up to a minute.
const DefaultTimeout = 2 * time.Minute

// dialTimeout limits the time to connect.
const dialTimeout = 10 * time.Second

// New returns a client of the server whose admin API is at addr, an address for [NewHTTP].
// It does not connect. An empty token is not sent.
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
// machine, unix:PATH, or a URL with http or https. The default port is 11380. With secure,
// or a URL with https, it uses TLS. The server must begin its answer within the timeout,
// unless that is 0.
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

// NotAPIError says that what answers is not the API of a beanpole.
type NotAPIError string

// Error implements error.
func (e NotAPIError) Error() string {
	return "that is not the admin pages of a beanpole: " + string(e)
}

// maxAnswer is more bytes than a page of the API has.
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
	return read(answer, out, cmp.Or(t.MaxAnswer, maxAnswer))
}

func streamOf(answer *http.Response) *Stream {
	return &Stream{
		Disposition: answer.Header.Get("Content-Disposition"),
		Write:       func(w io.Writer) error { _, err := io.Copy(w, answer.Body); return err },
		Close:       func() { answer.Body.Close() },
	}
}

// read reads an answer.
func read(answer *http.Response, out any, most int64) error {
	text, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	if err != nil {
		return err
	}
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch {
	case int64(len(text)) > most:
		return fmt.Errorf("its answer has more than %d bytes", most)
	case answer.StatusCode >= 400 && kind == "application/problem+json":
		return problemOf(answer, text)
	case answer.StatusCode >= 300:
		return NotAPIError(answer.Status)
	case out == nil || len(text) == 0 && kind == "":
		return nil
	}
	switch to := out.(type) {
	case *Bytes:
		*to = text
		return nil
	case *json.RawMessage:
		if kind == "application/json" && json.Valid(text) {
			*to = bytes.TrimSpace(text)
			return nil
		}
	default:
		if kind == "application/json" && json.Valid(text) {
			return json.Unmarshal(text, out)
		}
	}
	return NotAPIError(fmt.Sprintf("it answers with %.40q", kind))
}

// problemOf returns what the server says is wrong.
func problemOf(answer *http.Response, text []byte) error {
	p := new(Problem)
	if err := json.Unmarshal(text, p); err != nil || p.Status < 400 || p.Status > 599 {
		return NotAPIError("its answer cannot be read")
	}
	if seconds, err := strconv.ParseUint(answer.Header.Get("Retry-After"), 10, 31); err == nil {
		p.RetryAfter = time.Duration(seconds) * time.Second
	}
	return p
}
