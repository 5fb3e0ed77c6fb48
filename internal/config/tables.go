package config

import (
	"cmp"
	"fmt"
	"os/user"
	"strconv"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/rights"
)

// Tables contains the tables of a configuration file, for which there are no options:
// listeners, identities, rules, limits, policies, schedules and other servers.
type Tables struct {
	Listeners  []listenerTable `toml:"listener,omitempty"`
	Identities []identityTable `toml:"identity,omitempty"`
	Rules      []ruleTable     `toml:"rule,omitempty"`
	Limits     []limitTable    `toml:"limit,omitempty"`
	Policies   []policyTable   `toml:"policy,omitempty"`
	Schedules  []scheduleTable `toml:"schedule,omitempty"`
	Servers    []OtherServer   `toml:"console-server,omitempty"`
}

// tableNames contains the names of the tables.
var tableNames = []string{"listener", "identity", "rule", "limit", policyName, scheduleName, "console-server"}

// A listenerTable is a [[listener]] table: an address with its own requirements.
type listenerTable struct {
	Address    string   `toml:"address,omitempty"`
	Networks   []string `toml:"networks,omitempty"`
	Proxies    []string `toml:"proxy-protocol,omitempty"`
	TLSCert    string   `toml:"tls-cert,omitempty"`
	TLSKey     string   `toml:"tls-key,omitempty"`
	ClientCA   string   `toml:"tls-client-ca,omitempty"`
	Auth       bool     `toml:"require-auth,omitempty"`
	TokenInPut bool     `toml:"token-in-put,omitempty"`
}

// An identityTable is an [[identity]] table: an identity with its credentials.
type identityTable struct {
	Name         string   `toml:"name,omitempty"`
	Tokens       []string `toml:"tokens,omitempty"` // hashes
	Certificates []string `toml:"certificates,omitempty"`
	UnixUsers    []any    `toml:"unix-users,omitempty"` // names or numbers
	Networks     []string `toml:"networks,omitempty"`
}

// A ruleTable is a [[rule]] table, which grants rights on tubes.
type ruleTable struct {
	Identities []string `toml:"identities,omitempty"`
	Tubes      []string `toml:"tubes,omitempty"`
	Allow      []string `toml:"allow,omitempty"`
}

// Secure reports whether the tables define identities or rules.
func (t *Tables) Secure() bool { return len(t.Identities)+len(t.Rules) > 0 }

// Policy returns the access policy for the identities and rules.
func (opt *Options) Policy() (*access.Policy, error) {
	p, err := opt.Tables.policy()
	if err != nil {
		return nil, exit.UsageError("%s: %w", opt.File, err)
	}
	return p, nil
}

func (t *Tables) policy() (*access.Policy, error) {
	var c access.Config
	for _, it := range t.Identities {
		id, err := it.config()
		if err != nil {
			return nil, fmt.Errorf("identity %q: %w", it.Name, err)
		}
		c.Identities = append(c.Identities, id)
	}
	for i, rt := range t.Rules {
		set, err := rights.Parse(rt.Allow)
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		c.Rules = append(c.Rules, access.RuleConfig{Identities: rt.Identities, Tubes: rt.Tubes, Rights: set})
	}
	return access.New(c)
}

// config returns the parsed identity.
func (t *identityTable) config() (access.IdentityConfig, error) {
	tokens, wrongToken := parseAll(t.Tokens, access.ParseHash)
	users, wrongUser := parseAll(t.UnixUsers, userID)
	networks, wrongNetwork := parseAll(t.Networks, parseNetwork)
	return access.IdentityConfig{Name: t.Name, Tokens: tokens, Certificates: t.Certificates, UnixUsers: users, Networks: networks},
		cmp.Or(wrongToken, wrongUser, wrongNetwork)
}

// userID returns the numeric id of a user of this machine.
func userID(u any) (uint32, error) {
	switch u := u.(type) {
	case int64:
		if u >= 0 && u <= 1<<32-1 {
			return uint32(u), nil
		}
	case string:
		found, err := user.Lookup(u)
		if err != nil {
			return 0, fmt.Errorf("unknown user %q", u)
		}
		n, err := strconv.ParseUint(found.Uid, 10, 32)
		return uint32(n), err
	}
	return 0, fmt.Errorf("want the name or the number of a user, not %v", u)
}
