package daemon

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/api"
	"github.com/beanpole-mq/beanpole/internal/certs"
	"github.com/beanpole-mq/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/console"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

// An otherServer is a server that the console shows in addition to this one, with its
// credentials.
type otherServer struct {
	config.OtherServer
	server admin.Transport
}

// readOthers returns the other servers of the console. It does not connect to them.
func readOthers(opt *config.Options) (all []otherServer, err error) {
	servers, err := opt.OtherServers()
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		one := otherServer{OtherServer: s}
		if one.server, err = openOther(&s); err != nil {
			return nil, exit.UsageError("%s: console-server %q: %w", opt.File, s.Name, err)
		}
		all = append(all, one)
	}
	return all, nil
}

func openOther(s *config.OtherServer) (admin.Transport, error) {
	var token func() (string, error)
	if s.TokenFile != "" {
		token = func() (string, error) { return readToken(s.TokenFile) } // the file is read for each request, because it can change
		if _, err := token(); err != nil {
			return nil, err
		}
	}
	var check *tls.Config
	if s.CA != "" {
		var err error
		if check, err = (certs.Client{CA: s.CA}).Config(); err != nil {
			return nil, fmt.Errorf("tls-%w", err)
		}
	}
	return api.NewRemote(s.URL, token, check), nil
}

// readToken returns the token that a file contains.
func readToken(path string) (string, error) {
	content, err := os.ReadFile(path) // a file from the configuration
	if err != nil {
		return "", fmt.Errorf("token-file: %w", err)
	}
	token := strings.TrimSpace(string(content))
	if token == "" || strings.ContainsAny(token, "\r\n") {
		return "", fmt.Errorf("token-file: %s contains no token; want one line", path)
	}
	return token, nil
}

// otherWarnings returns warnings about the other servers of a valid configuration.
func otherWarnings(others []otherServer) (all []string) {
	for i := range others {
		s := &others[i]
		if u, err := url.Parse(s.URL); err == nil && s.TokenFile != "" && u.Scheme == "http" && !isLoopback(u.Hostname()) {
			all = append(all, fmt.Sprintf("the token of console-server %q is sent unencrypted; use an https:// address", s.Name))
		}
	}
	return all
}

func isLoopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

// consoleOf returns the URL under which other machines reach the console, or "" if they
// cannot reach it. If the admin listener serves all addresses, the URL contains the host
// of the member's address.
func consoleOf(opt *config.Options, member string) string {
	a, err := opt.Admin.Address()
	if err != nil || a.Path != "" || !opt.Admin.Console {
		return ""
	}
	host, _, _ := net.SplitHostPort(member)
	switch {
	case a.Host == "" || net.ParseIP(a.Host).IsUnspecified():
		a.Host = host
	case isLoopback(a.Host) && !isLoopback(host):
		return ""
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(a.Host, a.Port), Path: console.Prefix}
	if opt.Terms.TLS.Cert != "" {
		u.Scheme = "https"
	}
	return u.String()
}

// consoleServers registers the other servers with the API and returns them for the
// console.
func consoleServers(operations *api.API, others []otherServer) (all []console.Server) {
	for i := range others {
		o := &others[i]
		operations.AddServer(o.Name, o.ReadOnly, o.server)
		all = append(all, console.Server{Name: o.Name, URL: o.URL, ReadOnly: o.ReadOnly})
	}
	return all
}
