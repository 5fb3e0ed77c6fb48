package queue

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/cli/kit"
)

// What the protocol has no command for, beanpole does through its admin pages: the JSON
// API that --admin of the server turns on.

const (
	defaultAdminPort = "11380"
	apiPrefix        = "/api/v1"
)

// adminOptions say where the admin pages of the server are.
type adminOptions struct {
	addr string
	name string // of the option
}

// define adds the option. otherwise is where they are if nothing is said.
func (o *adminOptions) define(fs *pflag.FlagSet, otherwise, usage string) {
	o.name = cmp.Or(o.name, "admin")
	fs.StringVar(&o.addr, o.name, cmp.Or(os.Getenv("BEANPOLE_ADMIN"), otherwise), usage)
	fs.Lookup(o.name).Annotations = map[string][]string{kit.GroupKey: {kit.ServerTitle}}
}

// countsUsage explains the option where it tells more.
const countsUsage = "tell of bytes, ages, timeouts, releases and buries too,\nfrom the admin pages of a beanpole at `ADDR`"

// adminUsage explains the option where it is needed.
const adminUsage = "`ADDR` of the admin pages of a beanpole: HOST:PORT,\n:PORT of this machine, or unix:PATH"

// An adminClient asks the admin pages.
type adminClient struct {
	http  http.Client
	addr  string // as it was given
	base  string // of URLs
	token string
}

// admin returns a client. Nothing is connected yet.
func (s *session) admin(o *adminOptions) (*adminClient, error) {
	server, err := s.server.Options()
	if err != nil {
		return nil, err
	}
	network, addr, err := o.endpoint()
	if err != nil {
		return nil, err
	}
	a := &adminClient{addr: o.addr, base: "http://" + addr, token: server.Token}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: s.server.Timeout}).DialContext(ctx, network, addr)
		},
		ResponseHeaderTimeout: s.server.Timeout,
	}
	if network == "unix" {
		a.base = "http://localhost"
	}
	if server.TLS != nil {
		transport.TLSClientConfig = server.TLS.Clone()
		a.base = strings.Replace(a.base, "http:", "https:", 1)
	}
	a.http.Transport = transport
	return a, nil
}

// endpoint returns where to connect to.
func (o *adminOptions) endpoint() (network, addr string, err error) {
	if path, ok := strings.CutPrefix(o.addr, "unix:"); ok {
		return "unix", path, nil
	}
	if o.addr == "" || strings.Contains(o.addr, "/") {
		return "", "", kit.UsageError("--%s %q: want HOST:PORT, :PORT of this machine, or unix:PATH", o.name, o.addr)
	}
	host, port, err := net.SplitHostPort(o.addr)
	if err != nil {
		host, port = strings.Trim(o.addr, "[]"), defaultAdminPort
	}
	return "tcp", net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port), nil
}

// A problem is what the API answers if it does not do something, as RFC 9457 has it.
type problem struct {
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

// do sends a request with in as JSON, and reads the answer into out; either may be nil.
func (a *adminClient) do(ctx context.Context, method, path string, in, out any) error {
	answer, err := a.ask(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer answer.Close()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(answer).Decode(out); err != nil {
		return a.noAPI(err.Error())
	}
	return nil
}

// ask sends a request with in as JSON, if it is not nil, and returns the answer to be read.
func (a *adminClient) ask(ctx context.Context, method, path string, in any) (io.ReadCloser, error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+apiPrefix+path, body)
	if err != nil {
		return nil, err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return nil, a.unreachable(ctx, err)
	}
	if resp.StatusCode >= 300 {
		defer resp.Body.Close()
		return nil, a.refused(resp)
	}
	return resp.Body, nil
}

// tubeCounts is what the API tells of a tube and the protocol does not: how large the bodies of its
// jobs are, for how many seconds the next one has been ready, and how often its jobs have
// come to this since the tube came to be.
type tubeCounts struct {
	BodyBytes uint64 `json:"body_bytes"`
	Oldest    int64  `json:"oldest_ready"`

	Timeouts uint64 `json:"timeouts"`
	Releases uint64 `json:"releases"`
	Buries   uint64 `json:"buries"`
}

// tubeCounts asks for those of all tubes.
func (a *adminClient) tubeCounts(ctx context.Context) (map[string]*tubeCounts, error) {
	counts := make(map[string]*tubeCounts)
	for cursor, more := "", true; more; more = cursor != "" {
		var page struct {
			Tubes []struct {
				Name string `json:"name"`
				tubeCounts
			} `json:"tubes"`
			Next string `json:"next"`
		}
		if err := a.do(ctx, "GET", "/tubes?limit=10000&cursor="+url.QueryEscape(cursor), nil, &page); err != nil {
			return nil, err
		}
		for i := range page.Tubes {
			counts[page.Tubes[i].Name] = &page.Tubes[i].tubeCounts
		}
		cursor = page.Next
	}
	return counts, nil
}

// unreachable is words for admin pages that cannot be had.
func (a *adminClient) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	why := err
	if e, ok := errors.AsType[*url.Error](err); ok {
		why = e.Err // without the URL
	}
	switch {
	case errors.Is(err, io.EOF):
		why = errors.New("what listens there closes the connection")
	case errors.Is(err, syscall.ECONNREFUSED):
		why = errors.New("the connection is refused")
	case errors.Is(err, fs.ErrNotExist):
		why = errors.New("there is no such socket")
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		why = errors.New("they do not speak TLS: leave out --tls and what begins with it")
	}
	return kit.WithCode(kit.ExitDisconnected, fmt.Errorf("no admin pages at %s: %w; a beanpole has them if it was started with --admin, "+
		"beanstalkd has none, and --admin or BEANPOLE_ADMIN says here where they are", a.addr, why))
}

// noAPI is an error about something that answers, and is no beanpole.
func (a *adminClient) noAPI(what string) error {
	return kit.WithCode(kit.ExitFailure, fmt.Errorf("what answers at %s is not the admin pages of a beanpole: %s", a.addr, what))
}

// refused returns the error that an answer stands for.
func (a *adminClient) refused(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var p problem
	if kind != "application/problem+json" || json.NewDecoder(resp.Body).Decode(&p) != nil {
		return a.noAPI(resp.Status)
	}
	code := kit.ExitFailure
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		code = kit.ExitUnauthorized
	case http.StatusNotFound, http.StatusConflict:
		code = kit.ExitNothing
	case http.StatusBadRequest:
		code = kit.ExitUsage
	}
	return kit.WithCode(code, errors.New(cmp.Or(p.Detail, p.Title)))
}
