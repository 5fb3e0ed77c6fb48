package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/adminsocket"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

// An OtherServer is another server that the console shows.
type OtherServer struct {
	Name      string `toml:"name,omitempty"`
	Address   string `toml:"address,omitempty"`
	TokenFile string `toml:"token-file,omitempty"` // empty if no token is sent
	CA        string `toml:"tls-ca,omitempty"`     // file with certificate authorities; empty means the system's
	ReadOnly  bool   `toml:"read-only,omitempty"`

	URL string `toml:"-"` // URL of its admin listener, parsed from Address
}

// serverName matches valid names of servers, which are parts of URLs.
var serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// OtherServers returns the other servers that the console shows.
func (opt *Options) OtherServers() ([]OtherServer, error) {
	all := slices.Clone(opt.Tables.Servers)
	seen := make(map[string]bool)
	for i := range all {
		s := &all[i]
		err := s.locate()
		if err == nil && seen[s.Name] {
			err = fmt.Errorf("duplicate name %q", s.Name)
		}
		if err != nil {
			return nil, exit.UsageError("%s: console-server %d: %w", opt.File, i+1, err)
		}
		seen[s.Name] = true
	}
	return all, nil
}

// locate parses Address.
func (s *OtherServer) locate() error {
	if !serverName.MatchString(s.Name) {
		return fmt.Errorf("name %q: want 1 to 63 letters, digits and characters of ._-, the first a letter or a digit", s.Name)
	}
	u, err := url.Parse(s.Address)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.User != nil, strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment != "":
		return fmt.Errorf("address %q: want http://HOST:PORT or https://HOST:PORT, the admin listener of a beanpole server", s.Address)
	case u.Scheme == "http" && s.CA != "":
		return errors.New("tls-ca needs an address that starts with https://")
	}
	s.URL = u.Scheme + "://" + net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), adminsocket.DefaultPort))
	return nil
}
