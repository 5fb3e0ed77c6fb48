package main

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os/user"
	"slices"
	"strconv"

	"github.com/BurntSushi/toml"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/certs"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// The tables of a configuration file, which no option can say: listeners that differ
// from one another, who clients are and what they may do.
type tables struct {
	Listeners  []listenerTable `toml:"listener,omitempty"`
	Identities []identityTable `toml:"identity,omitempty"`
	Rules      []ruleTable     `toml:"rule,omitempty"`
	Limits     []limitTable    `toml:"limit,omitempty"`
}

// tableNames are the names of the tables.
var tableNames = []string{"listener", "identity", "rule", "limit"}

// A listenerTable is a listener with settings of its own.
type listenerTable struct {
	Address    string   `toml:"address,omitempty"`
	Networks   []string `toml:"networks,omitempty"`
	TLSCert    string   `toml:"tls-cert,omitempty"`
	TLSKey     string   `toml:"tls-key,omitempty"`
	ClientCA   string   `toml:"tls-client-ca,omitempty"`
	Auth       bool     `toml:"require-auth,omitempty"`
	TokenInPut bool     `toml:"token-in-put,omitempty"`
}

// An identityTable says who somebody is.
type identityTable struct {
	Name         string   `toml:"name,omitempty"`
	Tokens       []string `toml:"tokens,omitempty"` // hashes
	Certificates []string `toml:"certificates,omitempty"`
	UnixUsers    []any    `toml:"unix-users,omitempty"` // names or numbers
	Networks     []string `toml:"networks,omitempty"`
	Commands     *int     `toml:"max-commands-per-second,omitempty"`
}

// A ruleTable gives rights on tubes.
type ruleTable struct {
	Identities []string `toml:"identities,omitempty"`
	Tubes      []string `toml:"tubes,omitempty"`
	Allow      []string `toml:"allow,omitempty"`
}

// readTables reads the tables of a file.
func readTables(path string) (t tables, err error) {
	meta, err := toml.DecodeFile(path, &t)
	if err != nil {
		return t, configError(path, err)
	}
	for _, key := range meta.Undecoded() {
		if len(key) > 1 && slices.Contains(tableNames, key[0]) {
			return t, usageError("%s: there is no setting %q in a [[%s]]", path, key[1], key[0])
		}
	}
	return t, nil
}

// guardOptions are what a listener asks of its clients.
type guardOptions struct {
	networks   []netip.Prefix // that clients must come from; none: any
	tls        certs.Files    // empty: no TLS
	auth       bool           // a client must prove who it is
	tokenInPut bool           // the body of the first put may be the token
}

// check finds what contradicts itself.
func (o *guardOptions) check() error {
	if (o.tls != certs.Files{}) && (o.tls.Cert == "" || o.tls.Key == "") {
		return errors.New("TLS needs both tls-cert and tls-key")
	}
	return nil
}

// open reports whether nothing keeps strangers out.
func (o *guardOptions) open() bool {
	return len(o.networks) == 0 && !o.auth && o.tls.ClientCA == ""
}

// endpoint returns where the listener is and what it asks.
func (t *listenerTable) endpoint(port string) (e endpoint, err error) {
	if e.Address, err = server.ParseAddress(t.Address, port); err != nil {
		return e, err
	}
	if e.guard.networks, err = parseNetworks(t.Networks); err != nil {
		return e, err
	}
	e.guard.tls = certs.Files{Cert: t.TLSCert, Key: t.TLSKey, ClientCA: t.ClientCA}
	e.guard.auth, e.guard.tokenInPut = t.Auth, t.TokenInPut
	return e, e.guard.check()
}

// policy returns what the identities and rules say.
func (t *tables) policy() (*access.Policy, error) {
	var c access.Config
	for _, it := range t.Identities {
		id := access.IdentityConfig{Name: it.Name, Certificates: it.Certificates}
		err := it.fill(&id)
		if err != nil {
			return nil, fmt.Errorf("identity %q: %w", it.Name, err)
		}
		c.Identities = append(c.Identities, id)
	}
	for i, rt := range t.Rules {
		rights, err := access.ParseRights(rt.Allow)
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		c.Rules = append(c.Rules, access.RuleConfig{Identities: rt.Identities, Tubes: rt.Tubes, Rights: rights})
	}
	return access.New(c)
}

// fill reads what identifies somebody.
func (t *identityTable) fill(c *access.IdentityConfig) (err error) {
	for _, text := range t.Tokens {
		h, err := access.ParseHash(text)
		if err != nil {
			return err
		}
		c.Tokens = append(c.Tokens, h)
	}
	for _, u := range t.UnixUsers {
		uid, err := userID(u)
		if err != nil {
			return err
		}
		c.UnixUsers = append(c.UnixUsers, uid)
	}
	if n := t.Commands; n != nil && (*n < 0 || *n > math.MaxInt32) {
		return fmt.Errorf("max-commands-per-second: want 0, which is any number, to %d, not %d", math.MaxInt32, *n)
	}
	c.Networks, err = parseNetworks(t.Networks)
	return err
}

// userID returns the number of a user of this machine.
func userID(u any) (uint32, error) {
	switch u := u.(type) {
	case int64:
		if u >= 0 && u <= 1<<32-1 {
			return uint32(u), nil
		}
	case string:
		found, err := user.Lookup(u)
		if err != nil {
			return 0, fmt.Errorf("there is no user %q", u)
		}
		n, err := strconv.ParseUint(found.Uid, 10, 32)
		return uint32(n), err
	}
	return 0, fmt.Errorf("want the name or the number of a user, not %v", u)
}

// parseNetworks reads addresses and networks.
func parseNetworks(texts []string) ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for _, s := range texts {
		n, err := parseNetwork(s)
		if err != nil {
			return nil, err
		}
		networks = append(networks, n)
	}
	return networks, nil
}

func parseNetwork(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	n, err := netip.ParsePrefix(s)
	if err != nil {
		return n, fmt.Errorf("%q is not a network: want an address such as 10.1.2.3, or 10.0.0.0/8", s)
	}
	return n.Masked(), nil
}
