package access

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// A Config is what an operator says of identities and rules. The zero value
// knows nobody and has no rules.
type Config struct {
	Identities []IdentityConfig
	Rules      []RuleConfig
}

// An IdentityConfig says how an identity is recognised. It needs one way at
// least, and may have several.
type IdentityConfig struct {
	Name         string         // unique; not "*" and not empty
	Tokens       []Hash         // any of them
	Certificates []string       // common name or DNS name of a client certificate
	UnixUsers    []uint32       // user ids at the other end of a unix socket
	Networks     []netip.Prefix // that clients come from
}

// A RuleConfig gives rights on tubes to identities.
type RuleConfig struct {
	Identities []string // names; "*" is everybody, also clients that nothing identifies
	Tubes      []string // patterns: * matches any characters, ? one; empty: all tubes
	Rights     Rights
}

// A Policy recognises identities and knows their rights.
type Policy struct {
	byToken       map[Hash]*Identity
	byCertificate map[string]*Identity
	byUser        map[uint32]*Identity
	byNetwork     []network // the narrowest first
	nobody        *Identity
	known         int
}

type network struct {
	prefix   netip.Prefix
	identity *Identity
}

// An Identity is somebody with rights.
type Identity struct {
	name  string
	all   bool // there are no rules
	rules []rule
}

type rule struct {
	tubes  Pattern
	rights Rights
}

// everybody is the name that stands for every identity.
const everybody = "*"

// New returns the policy that a configuration asks for. An error says which
// identity or rule is wrong.
func New(c Config) (*Policy, error) {
	p := &Policy{
		byToken:       make(map[Hash]*Identity),
		byCertificate: make(map[string]*Identity),
		byUser:        make(map[uint32]*Identity),
		nobody:        &Identity{all: len(c.Rules) == 0},
		known:         len(c.Identities),
	}
	byName := make(map[string]*Identity)
	for i := range c.Identities {
		ic := &c.Identities[i]
		if ic.Name == "" || ic.Name == everybody {
			return nil, fmt.Errorf("identity %d: want a name, and not %q", i+1, everybody)
		}
		if byName[ic.Name] != nil {
			return nil, fmt.Errorf("identity %q is there twice", ic.Name)
		}
		id := &Identity{name: ic.Name, all: len(c.Rules) == 0}
		byName[ic.Name] = id
		if err := p.add(ic, id); err != nil {
			return nil, fmt.Errorf("identity %q: %w", ic.Name, err)
		}
	}
	slices.SortStableFunc(p.byNetwork, func(a, b network) int { return b.prefix.Bits() - a.prefix.Bits() })
	for i, rc := range c.Rules {
		if err := p.give(rc, byName); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return p, nil
}

// add notes what identifies somebody.
func (p *Policy) add(c *IdentityConfig, id *Identity) error {
	if len(c.Tokens)+len(c.Certificates)+len(c.UnixUsers)+len(c.Networks) == 0 {
		return errors.New("nothing identifies it: it needs a token, a certificate, a unix user or a network")
	}
	return errors.Join(
		enter(p.byToken, c.Tokens, id, "token"),
		enter(p.byCertificate, c.Certificates, id, "certificate"),
		enter(p.byUser, c.UnixUsers, id, "unix user"),
		p.addNetworks(c.Networks, id),
	)
}

// enter makes each key lead to the identity. A key can lead to one only.
func enter[K comparable](m map[K]*Identity, keys []K, id *Identity, what string) error {
	for _, k := range keys {
		if other := m[k]; other != nil && other != id {
			return fmt.Errorf("it has a %s of identity %q", what, other.name)
		}
		m[k] = id
	}
	return nil
}

func (p *Policy) addNetworks(prefixes []netip.Prefix, id *Identity) error {
	for _, prefix := range prefixes {
		prefix = prefix.Masked()
		for _, n := range p.byNetwork {
			if n.prefix == prefix && n.identity != id {
				return fmt.Errorf("it has the network %s of identity %q", prefix, n.identity.name)
			}
		}
		p.byNetwork = append(p.byNetwork, network{prefix, id})
	}
	return nil
}

// give adds a rule to the identities that it names.
func (p *Policy) give(c RuleConfig, byName map[string]*Identity) error {
	if len(c.Identities) == 0 {
		return fmt.Errorf("it has no identities (%q is everybody)", everybody)
	}
	if c.Rights == None {
		return errors.New("it allows nothing")
	}
	r := rule{tubes: NewPattern(c.Tubes), rights: c.Rights}
	for _, name := range c.Identities {
		if name == everybody {
			p.nobody.rules = append(p.nobody.rules, r)
			for _, id := range byName {
				id.rules = append(id.rules, r)
			}
			continue
		}
		id := byName[name]
		if id == nil {
			return fmt.Errorf("there is no identity %q", name)
		}
		id.rules = append(id.rules, r)
	}
	return nil
}

// Known returns how many identities there are.
func (p *Policy) Known() int { return p.known }

// HasRules reports whether there are any. If not, everybody who is let in may do
// everything.
func (p *Policy) HasRules() bool { return !p.nobody.all }

// Nobody returns the identity of clients that nothing identifies.
func (p *Policy) Nobody() *Identity { return p.nobody }

// ByToken returns the identity that a token belongs to.
func (p *Policy) ByToken(token string) (*Identity, bool) {
	h, err := HashOf(token)
	if err != nil {
		return nil, false
	}
	id, ok := p.byToken[h]
	return id, ok
}

// ByCertificate returns the identity of a client certificate. The caller has checked
// that the certificate is good.
func (p *Policy) ByCertificate(c *x509.Certificate) (*Identity, bool) {
	for _, name := range append([]string{c.Subject.CommonName}, c.DNSNames...) {
		if id, ok := p.byCertificate[name]; ok && name != "" {
			return id, true
		}
	}
	return nil, false
}

// ByUnixUser returns the identity of a user of this machine.
func (p *Policy) ByUnixUser(uid uint32) (*Identity, bool) {
	id, ok := p.byUser[uid]
	return id, ok
}

// ByNetwork returns the identity of the narrowest network that an address is in. The zone
// of a link-local address does not matter.
func (p *Policy) ByNetwork(addr netip.Addr) (*Identity, bool) {
	addr = addr.Unmap().WithZone("") // a Prefix contains no address with a zone
	for _, n := range p.byNetwork {
		if n.prefix.Contains(addr) {
			return n.identity, true
		}
	}
	return nil, false
}

// Name returns the identity's name; empty for Nobody.
func (id *Identity) Name() string { return id.name }

// May reports whether all of the rights are given on a tube.
func (id *Identity) May(r Rights, tube string) bool { return r&^id.on(tube) == 0 }

// MayAny reports whether one of the rights is given on a tube.
func (id *Identity) MayAny(r Rights, tube string) bool { return r&id.on(tube) != 0 }

// MayAnywhere reports whether all of the rights are given on some tube, each
// perhaps on another.
func (id *Identity) MayAnywhere(r Rights) bool {
	if id.all {
		return true
	}
	for _, rule := range id.rules {
		r &^= rule.rights
	}
	return r == None
}

// MayEverywhere reports whether all of the rights are given on every tube.
func (id *Identity) MayEverywhere(r Rights) bool {
	if id.all {
		return true
	}
	for _, rule := range id.rules {
		if rule.tubes.all() {
			r &^= rule.rights
		}
	}
	return r == None
}

// Unrestricted reports whether the identity has every right on every tube.
func (id *Identity) Unrestricted() bool { return id.MayEverywhere(All) }

// on returns the rights on a tube.
func (id *Identity) on(tube string) Rights {
	if id.all {
		return All
	}
	given := None
	for _, rule := range id.rules {
		if rule.tubes.Matches(tube) {
			given |= rule.rights
		}
	}
	return given
}
