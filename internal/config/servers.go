package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/cli/kit"
)

// A serverTable is another server that the console shows.
type serverTable struct {
	Name      string `toml:"name,omitempty"`
	Address   string `toml:"address,omitempty"`
	TokenFile string `toml:"token-file,omitempty"`
	CA        string `toml:"tls-ca,omitempty"`
	ReadOnly  bool   `toml:"read-only,omitempty"`
}

// An OtherServer is another server that the console shows.
type OtherServer struct {
	Name       string
	URL        string // of its admin pages; empty: it is a beanstalkd
	Beanstalkd string // HOST:PORT; empty: it is a beanpole
	TokenFile  string // empty: no token is sent
	CA         string // file with the authorities that its certificate is of; empty: those of the system
	ReadOnly   bool
}

// serverName is what the name of a server is like: it is a part of URLs.
var serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// OtherServers returns the other servers that the console shows.
func (opt *Options) OtherServers() ([]OtherServer, error) {
	var all []OtherServer
	seen := make(map[string]bool)
	for i := range opt.Tables.Servers {
		t := &opt.Tables.Servers[i]
		s, err := t.server()
		if err == nil && seen[t.Name] {
			err = fmt.Errorf("there is another one with the name %q", t.Name)
		}
		if err != nil {
			return nil, kit.UsageError("%s: console-server %d: %w", opt.File, i+1, err)
		}
		seen[t.Name] = true
		all = append(all, s)
	}
	return all, nil
}

func (t *serverTable) server() (s OtherServer, err error) {
	s = OtherServer{Name: t.Name, TokenFile: t.TokenFile, CA: t.CA, ReadOnly: t.ReadOnly}
	if !serverName.MatchString(t.Name) {
		return s, fmt.Errorf("name %q: want 1 to 63 letters, digits and characters of ._-, the first a letter or a digit", t.Name)
	}
	address := t.Address
	if !strings.Contains(address, "://") {
		scheme := "http"
		if t.CA != "" {
			scheme = "https"
		}
		address = scheme + "://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment != "" {
		return s, fmt.Errorf("address %q: want HOST:PORT, http://HOST:PORT, https://HOST:PORT or beanstalk://HOST:PORT", t.Address)
	}
	switch u.Scheme {
	case "beanstalk":
		if t.TokenFile != "" || t.CA != "" {
			return s, errors.New("a beanstalkd takes neither token-file nor tls-ca")
		}
		s.Beanstalkd = net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "11300"))
		return s, nil
	case "http":
		if t.CA != "" {
			return s, errors.New("tls-ca is for an address that begins with https://")
		}
	case "https":
	default:
		return s, fmt.Errorf("address %q: there is no scheme %q: want http, https or beanstalk", t.Address, u.Scheme)
	}
	s.URL = u.Scheme + "://" + net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), defaultAdminPort))
	return s, nil
}
