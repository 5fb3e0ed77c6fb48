package queue

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
)

// What the protocol has no command for, beanpole does through its admin pages: the JSON
// API that --admin of the server turns on.

const defaultAdminPort = "11380"

// adminOptions say where the admin pages of the server are.
type adminOptions struct {
	addr string
}

// define adds the option. otherwise is where they are if nothing is said.
func (o *adminOptions) define(fs *pflag.FlagSet, otherwise, usage string) {
	fs.StringVar(&o.addr, "admin", cmp.Or(os.Getenv("BEANPOLE_ADMIN"), otherwise), usage)
	fs.Lookup("admin").Annotations = map[string][]string{kit.GroupKey: {kit.ServerTitle}}
}

// countsUsage explains the option where it tells more.
const countsUsage = "tell of bytes, ages, timeouts, releases and buries too,\nfrom the admin pages of a beanpole at `ADDR`"

// adminUsage explains the option where it is needed.
const adminUsage = "`ADDR` of the admin pages of a beanpole: HOST:PORT,\n:PORT of this machine, or unix:PATH"

// adminPages are a transport to the admin pages, whose errors are those of commands.
type adminPages struct {
	admin.HTTP
	addr string // as it was given
}

// admin returns a client. Nothing is connected yet.
func (s *session) admin(o *adminOptions) (*admin.Client, error) {
	server, err := s.server.Options()
	if err != nil {
		return nil, err
	}
	network, addr, err := o.endpoint()
	if err != nil {
		return nil, err
	}
	a := &adminPages{addr: o.addr, HTTP: admin.HTTP{URL: "http://" + addr}}
	if server.Token != "" {
		a.Token = func() (string, error) { return server.Token, nil }
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: s.server.Timeout}).DialContext(ctx, network, addr)
		},
		ResponseHeaderTimeout: s.server.Timeout,
	}
	if network == "unix" {
		a.URL = "http://localhost"
	}
	if server.TLS != nil {
		transport.TLSClientConfig = server.TLS.Clone()
		a.URL = strings.Replace(a.URL, "http:", "https:", 1)
	}
	a.Client.Transport = transport
	return admin.On(a), nil
}

// endpoint returns where to connect to.
func (o *adminOptions) endpoint() (network, addr string, err error) {
	if path, ok := strings.CutPrefix(o.addr, "unix:"); ok {
		return "unix", path, nil
	}
	if o.addr == "" || strings.Contains(o.addr, "/") {
		return "", "", kit.UsageError("--admin %q: want HOST:PORT, :PORT of this machine, or unix:PATH", o.addr)
	}
	host, port, err := net.SplitHostPort(o.addr)
	if err != nil {
		host, port = strings.Trim(o.addr, "[]"), defaultAdminPort
	}
	return "tcp", net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port), nil
}

// Do implements admin.Transport.
func (a *adminPages) Do(ctx context.Context, route string, in, out any) error {
	err := a.HTTP.Do(ctx, route, in, out)
	code := kit.ExitFailure
	switch admin.StatusOf(err) {
	case 0:
		if strange, ok := errors.AsType[admin.NotAPIError](err); ok {
			return kit.WithCode(kit.ExitFailure, fmt.Errorf("what answers at %s is not the admin pages of a beanpole: %s", a.addr, string(strange)))
		}
		if err != nil {
			err = a.unreachable(ctx, err)
		}
		return err
	case http.StatusUnauthorized, http.StatusForbidden:
		code = kit.ExitUnauthorized
	case http.StatusNotFound, http.StatusConflict:
		code = kit.ExitNothing
	case http.StatusBadRequest:
		code = kit.ExitUsage
	}
	return kit.WithCode(code, err)
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

// countsOf asks for those of all tubes.
func countsOf(ctx context.Context, a *admin.Client) (map[string]*tubeCounts, error) {
	counts := make(map[string]*tubeCounts)
	for in, more := (admin.ListTubes{Limit: 10_000}), true; more; more = in.Cursor != "" {
		page, err := a.ListTubes(ctx, &in)
		if err != nil {
			return nil, err
		}
		for i := range page.Tubes {
			t := &page.Tubes[i]
			counts[t.Name] = &tubeCounts{t.BodyBytes, t.OldestReady, t.Timeouts, t.Releases, t.Buries}
		}
		in.Cursor = page.Next
	}
	return counts, nil
}

// unreachable is words for admin pages that cannot be had.
func (a *adminPages) unreachable(ctx context.Context, err error) error {
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
