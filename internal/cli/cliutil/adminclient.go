package cliutil

import (
	"cmp"
	"context"
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
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/flags"
)

// adminVariable is the environment variable with the address of the admin API for
// commands. BEANPOLE_ADMIN, the variable of the setting admin, is the address on which
// the server serves the API.
const adminVariable = "BEANPOLE_ADMIN_ADDR"

// DefineAdmin adds the option --admin to a command that uses the admin API.
func (s *Session) DefineAdmin(cmd *cobra.Command) {
	flags.AddGroup(cmd.Flags(), ServerTitle, func(fs *pflag.FlagSet) {
		fs.StringVar(&s.Admin, "admin", "", "use the admin API at `ADDR`: HOST:PORT, :PORT of this\nmachine, unix:PATH or a URL (default the local socket\nof the server at --addr)")
	})
}

// GivenAdmin returns the address of the admin API that the user has given, or "". The
// variable does not apply if --addr is given, which can be another server.
func (s *Session) GivenAdmin() string {
	if s.Server.addr.Changed {
		return s.Admin
	}
	return cmp.Or(s.Admin, os.Getenv(adminVariable))
}

// adminAddress returns the address of the admin API: the given address, or else the local
// socket of the server at --addr. It returns "" if there is neither.
func (s *Session) adminAddress() string {
	if given := s.GivenAdmin(); given != "" {
		return given
	}
	for addr := range strings.SplitSeq(s.Server.Addr, ",") {
		host, port, _ := net.SplitHostPort(addr)
		if ip := net.ParseIP(host); host == "localhost" || host == "" && port != "" || ip.IsLoopback() || strings.HasPrefix(addr, "unix:") {
			if path := adminsocket.Find(port, os.Getenv("BEANPOLE_JOURNAL")); path != "" {
				return "unix:" + path
			}
		}
	}
	return ""
}

// FindAdminClient returns a client of the admin API, or nil if --admin is not given and
// the server at --addr has no local socket. The client connects with the first request.
func (s *Session) FindAdminClient() (*admin.Client, error) {
	t, err := s.transport()
	if t == nil || err != nil {
		return nil, err
	}
	return admin.On(t), nil
}

// AdminClient is like FindAdminClient, for a command that requires the admin API.
func (s *Session) AdminClient() (*admin.Client, error) {
	a, err := s.FindAdminClient()
	if a == nil && err == nil {
		err = exit.WithCode(exit.Disconnected, fmt.Errorf("the server at %s has no local socket for its admin API; set --admin or %s to the address of the API (beanstalkd has no such API)", s.Server.Addr, adminVariable))
	}
	return a, err
}

// adminTransport sends requests to the admin API. Its errors have exit codes.
type adminTransport struct {
	admin.HTTP
	addr string // as given
}

// transport returns the transport to the admin API, or nil if its address is unknown.
func (s *Session) transport() (*adminTransport, error) {
	server, err := s.Server.Options()
	if err != nil {
		return nil, err
	}
	addr := s.adminAddress()
	if addr == "" {
		return nil, nil
	}
	t, err := admin.NewHTTP(addr, server.TLS, server.Timeout)
	if err != nil {
		return nil, exit.UsageError("--admin: %w", err)
	}
	if server.Token != "" {
		t.Token = func() (string, error) { return server.Token, nil }
	}
	return &adminTransport{HTTP: *t, addr: addr}, nil
}

// Probe performs a health check. It reports whether the check succeeds, and returns the
// first line of the answer. page is /healthz or /readyz. It returns false and no error if
// the address of the admin API is unknown.
func (s *Session) Probe(ctx context.Context, page string) (ok bool, line string, err error) {
	t, err := s.transport()
	if t == nil || err != nil {
		return false, "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.URL+page, nil)
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
	code := exit.Failure
	switch admin.StatusOf(err) {
	case 0:
		if strange, ok := errors.AsType[admin.NotAPIError](err); ok {
			return exit.WithCode(exit.Failure, fmt.Errorf("%s is not the admin API of a beanpole server: %s", a.addr, string(strange)))
		}
		if err != nil {
			err = a.unreachable(ctx, err)
		}
		return err
	case http.StatusUnauthorized, http.StatusForbidden:
		code = exit.Unauthorized
	case http.StatusNotFound, http.StatusConflict:
		code = exit.Nothing
	case http.StatusBadRequest:
		code = exit.Usage
	}
	return exit.WithCode(code, err)
}

// unreachable explains the error of a request without an answer.
func (a *adminTransport) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the URL
	}
	why := cmp.Or(whyNoServer(err), whyLost(err), err.Error())
	return exit.WithCode(exit.Disconnected, fmt.Errorf("no admin API at %s: %s; give its address with --admin or %s (beanstalkd has no such API)", a.addr, why, adminVariable))
}

// AdminNeeds is the end of the help of a command that uses the admin API.
const AdminNeeds = `This command uses the admin API of beanpole, which beanstalkd does not have.`
