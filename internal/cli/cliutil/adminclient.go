package cliutil

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/adminsocket"
)

// Commands that the protocol lacks use the JSON API of the server.

// DefineAdmin adds the option that says where the admin pages of the server are. otherwise is where
// if nothing is said.
func (s *Session) DefineAdmin(cmd *cobra.Command, otherwise, usage string) {
	AddFlags(cmd.Flags(), ServerTitle, func(fs *pflag.FlagSet) {
		fs.StringVar(&s.Admin, "admin", cmp.Or(os.Getenv("BEANPOLE_ADMIN"), otherwise), usage)
	})
}

// NeedAdmin adds the option to a command that needs them, or when it does: "with --force: ".
func (s *Session) NeedAdmin(cmd *cobra.Command, when string) {
	s.DefineAdmin(cmd, "", when+"`ADDR` of the admin API: HOST:PORT, :PORT of this\nmachine, or unix:PATH (default the socket of a server\non this machine, or 127.0.0.1:"+adminsocket.DefaultPort+")")
}

// adminAddress returns the address of the admin API: as given, or the local socket of the
// server at --addr, or else the default TCP address.
func (s *Session) adminAddress() string {
	return cmp.Or(s.Admin, s.adminSocket(), "127.0.0.1:"+adminsocket.DefaultPort)
}

// adminSocket returns the address of the local socket of the server at --addr. It is empty if
// there is none.
func (s *Session) adminSocket() string {
	host, port, _ := net.SplitHostPort(s.Server.Addr)
	if ip := net.ParseIP(host); host == "localhost" || ip.IsLoopback() {
		if path := adminsocket.Find(port, os.Getenv("BEANPOLE_JOURNAL")); path != "" {
			return "unix:" + path
		}
	}
	return ""
}

// LocalAdminClient returns a client of the admin API at the local socket of the server, for a command
// that can do without. It is nil if there is none.
func (s *Session) LocalAdminClient() *admin.Client {
	if s.adminSocket() == "" {
		return nil
	}
	a, err := s.AdminClient()
	if err != nil {
		return nil
	}
	return a
}

// adminTransport are a transport to the admin pages, whose errors are those of commands.
type adminTransport struct {
	admin.HTTP
	addr string // as it was given
}

// AdminClient returns a client of the admin pages. It connects with the first request.
func (s *Session) AdminClient() (*admin.Client, error) {
	t, err := s.transport()
	if err != nil {
		return nil, err
	}
	return admin.On(t), nil
}

func (s *Session) transport() (*adminTransport, error) {
	server, err := s.Server.Options()
	if err != nil {
		return nil, err
	}
	where := s.adminAddress()
	t, err := admin.NewHTTP(where, server.TLS, server.Timeout)
	if err != nil {
		return nil, UsageError("--admin: %w", err)
	}
	if server.Token != "" {
		t.Token = func() (string, error) { return server.Token, nil }
	}
	return &adminTransport{HTTP: *t, addr: where}, nil
}

// Ready returns whether clients can use the queue, and the first line of /readyz.
func (s *Session) Ready(ctx context.Context) (ready bool, line string, err error) {
	t, err := s.transport()
	if err != nil {
		return false, "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.URL+"/readyz", nil)
	if err != nil {
		return false, "", err
	}
	res, err := t.Client.Do(req)
	if err != nil {
		return false, "", t.unreachable(ctx, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	line, _, _ = strings.Cut(string(text), "\n")
	return res.StatusCode == http.StatusOK, line, err
}

// Do implements admin.Transport.
func (a *adminTransport) Do(ctx context.Context, route string, in, out any) error {
	err := a.HTTP.Do(ctx, route, in, out)
	code := ExitFailure
	switch admin.StatusOf(err) {
	case 0:
		if strange, ok := errors.AsType[admin.NotAPIError](err); ok {
			return WithCode(ExitFailure, fmt.Errorf("what answers at %s is not the admin pages of a beanpole: %s", a.addr, string(strange)))
		}
		if err != nil {
			err = a.unreachable(ctx, err)
		}
		return err
	case http.StatusUnauthorized, http.StatusForbidden:
		code = ExitUnauthorized
	case http.StatusNotFound, http.StatusConflict:
		code = ExitNothing
	case http.StatusBadRequest:
		code = ExitUsage
	}
	return WithCode(code, err)
}

// unreachable is words for admin pages that cannot be had.
func (a *adminTransport) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	why := whyUnreachable(err)
	_, garbled := errors.AsType[tls.RecordHeaderError](err)
	e, ok := errors.AsType[*url.Error](err)
	switch {
	case why != "":
	case garbled:
		why = "they do not speak TLS: leave out --tls and what begins with it"
	case errors.Is(err, io.EOF):
		why = "what listens there closes the connection"
	case ok:
		why = e.Err.Error() // without the URL
	default:
		why = err.Error()
	}
	return WithCode(ExitDisconnected, fmt.Errorf("no admin pages at %s: %s; give their address with --admin or BEANPOLE_ADMIN "+
		"(beanstalkd has none)", a.addr, why))
}

// AdminNeeds is the end of the help of a command that needs them.
const AdminNeeds = `This needs a beanpole that has admin pages (--admin of the server): the protocol has no
command for it, and so beanstalkd has none.`
