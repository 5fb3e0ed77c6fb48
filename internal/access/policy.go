package access

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/rights"
)

// A Config defines identities and rules. The zero value defines neither.
type Config struct {
	Identities []IdentityConfig
	Rules      []RuleConfig
}

// An IdentityConfig contains the credentials of an identity. There must be at least one.
type IdentityConfig struct {
	Name         string         // unique; not "*" and not empty
	Tokens       []Hash         // hashes of tokens, each of which identifies the client
	Certificates []string       // common name or DNS name of a client certificate
	UnixUsers    []uint32       // ids of users at the other end of a Unix socket
	Networks     []netip.Prefix // networks of its clients
}

// A RuleConfig grants identities rights on tubes.
type RuleConfig struct {
	Identities []string // names; "*" includes unauthenticated clients
	Tubes      []string // patterns: * matches any characters, ? one
	Rights     rights.Set
}

// A Policy identifies clients and contains their rights.
type Policy struct {
	byToken       map[Hash]*Identity
	byCertificate map[string]*Identity
	byUser        map[uint32]*Identity
	byNetwork     map[netip.Prefix]*Identity
	byName        map[string]*Identity
	nobody        *Identity
	identities    int
	rules         int
}

// An Identity is an authenticated principal with rights.
type Identity struct {
	name  string
	all   bool // has all rights
	rules []rule
}

type rule struct {
	tubes  Pattern
	rights rights.Set
}

// everybody is the name that matches every identity.
const everybody = "*"

// New returns the policy for a configuration. Its errors contain the name of the invalid
// identity or rule.
func New(c Config) (*Policy, error) {
	p := &Policy{
		byToken:       make(map[Hash]*Identity),
		byCertificate: make(map[string]*Identity),
		byUser:        make(map[uint32]*Identity),
		byNetwork:     make(map[netip.Prefix]*Identity),
		byName:        make(map[string]*Identity),
		nobody:        &Identity{all: len(c.Rules) == 0},
		identities:    len(c.Identities),
		rules:         len(c.Rules),
	}
	for i := range c.Identities {
		ic := &c.Identities[i]
		if ic.Name == "" || ic.Name == everybody {
			return nil, fmt.Errorf("identity %d: want a name, and not %q", i+1, everybody)
		}
		if p.byName[ic.Name] != nil {
			return nil, fmt.Errorf("identity %q is defined twice", ic.Name)
		}
		id := &Identity{name: ic.Name, all: len(c.Rules) == 0}
		p.byName[ic.Name] = id
		if err := p.add(ic, id); err != nil {
			return nil, fmt.Errorf("identity %q: %w", ic.Name, err)
		}
	}
	for i, rc := range c.Rules {
		if err := p.give(rc); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	for _, id := range append(slices.Collect(maps.Values(p.byName)), p.nobody) {
		id.all = id.all || id.given(Pattern.all) == rights.All
	}
	return p, nil
}

// add registers the credentials of an identity.
func (p *Policy) add(c *IdentityConfig, id *Identity) error {
	if len(c.Tokens)+len(c.Certificates)+len(c.UnixUsers)+len(c.Networks) == 0 {
		return errors.New("no credentials; add a token, a certificate, a Unix user or a network")
	}
	err := errors.Join(
		enter(p.byToken, c.Tokens, id, "a token"),
		enter(p.byCertificate, c.Certificates, id, "a certificate"),
		enter(p.byUser, c.UnixUsers, id, "a unix user"),
	)
	for _, prefix := range c.Networks {
		prefix = prefix.Masked()
		err = cmp.Or(err, enter(p.byNetwork, []netip.Prefix{prefix}, id, "the network "+prefix.String()))
	}
	return err
}

// enter maps each key to the identity. It returns an error if a key already belongs to
// another identity.
func enter[K comparable](m map[K]*Identity, keys []K, id *Identity, what string) error {
	for _, k := range keys {
		if other := m[k]; other != nil && other != id {
			return fmt.Errorf("it shares %s with identity %q", what, other.name)
		}
		m[k] = id
	}
	return nil
}

// give adds a rule to the identities that it contains.
func (p *Policy) give(c RuleConfig) error {
	if len(c.Identities) == 0 {
		return fmt.Errorf("no identities; use %q for every client", everybody)
	}
	if c.Rights == rights.None {
		return errors.New("no rights; list at least one")
	}
	tubes, err := NewPattern(c.Tubes)
	if err != nil {
		return err
	}
	r := rule{tubes, c.Rights}
	for _, name := range c.Identities {
		if name == everybody {
			p.nobody.rules = append(p.nobody.rules, r)
			for _, id := range p.byName {
				id.rules = append(id.rules, r)
			}
			continue
		}
		id := p.byName[name]
		if id == nil {
			return fmt.Errorf("unknown identity %q", name)
		}
		id.rules = append(id.rules, r)
	}
	return nil
}

// Nobody returns the identity of unauthenticated clients.
func (p *Policy) Nobody() *Identity { return p.nobody }

// Credentials contains the credentials of a client. Zero fields are absent.
type Credentials struct {
	Token       []byte            // nil if there is no token
	Certificate *x509.Certificate // verified; nil if there is no certificate
	User        UnixUser          // user at the other end of a Unix socket
	Address     netip.Addr        // the client's address; the zero Addr for a Unix socket
}

// A UnixUser is a user of this machine. It is valid if Known is true.
type UnixUser struct {
	ID    uint32
	Known bool
}

// Identify returns the identity of the strongest credential, or Nobody and false if there
// is none. An invalid token makes the other credentials irrelevant.
func (p *Policy) Identify(e Credentials) (id *Identity, known bool) {
	switch {
	case e.Token != nil:
		if h, err := HashOf(e.Token); err == nil {
			id = p.byToken[h]
		}
	default:
		id = cmp.Or(p.ofCertificate(e.Certificate), p.ofUser(e.User), p.ofAddress(e.Address))
	}
	if id == nil {
		return p.nobody, false
	}
	return id, true
}

func (p *Policy) ofCertificate(c *x509.Certificate) *Identity {
	if c == nil {
		return nil
	}
	for _, name := range append([]string{c.Subject.CommonName}, c.DNSNames...) {
		if id := p.byCertificate[name]; id != nil && name != "" {
			return id
		}
	}
	return nil
}

func (p *Policy) ofUser(u UnixUser) *Identity {
	if !u.Known {
		return nil
	}
	return p.byUser[u.ID]
}

// ofAddress returns the identity of the narrowest network that contains addr.
func (p *Policy) ofAddress(addr netip.Addr) *Identity {
	addr = plain(addr)
	for bits := addr.BitLen(); bits >= 0; bits-- {
		prefix, _ := addr.Prefix(bits)
		if id := p.byNetwork[prefix]; id != nil {
			return id
		}
	}
	return nil
}

// Name returns the identity's name. It is empty for Nobody.
func (id *Identity) Name() string { return id.name }

// Unrestricted reports whether the identity has all rights.
func (id *Identity) Unrestricted() bool { return id.all }

// Meets reports whether the identity has the rights of n on tubes. tubes is empty if n
// itself determines them.
func (id *Identity) Meets(n rights.Need, tubes ...string) bool {
	if id.all || n.Place == rights.Nowhere {
		return true
	}
	switch n.Place {
	case rights.Unstated:
		return false
	case rights.SomeTube:
		return n.MetBy(id.given(func(Pattern) bool { return true }))
	case rights.EveryTube:
		return n.MetBy(id.given(Pattern.all))
	}
	for _, tube := range tubes {
		if !n.MetBy(id.given(func(p Pattern) bool { return p.Matches(tube) })) {
			return false
		}
	}
	return true
}

// given returns the rights from the rules whose pattern of tubes satisfies on.
func (id *Identity) given(on func(tubes Pattern) bool) rights.Set {
	given := rights.None
	for _, rule := range id.rules {
		if on(rule.tubes) {
			given |= rule.rights
		}
	}
	return given
}
