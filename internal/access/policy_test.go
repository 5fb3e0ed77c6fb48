package access

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net/netip"
	"strings"
	"testing"
)

func TestTokens(t *testing.T) {
	token := NewToken()
	if token == NewToken() {
		t.Fatal("two new tokens are equal")
	}
	h, err := HashOf(token)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(h.String(), token[3:]) {
		t.Error("the hash shows the token")
	}
	again, err := ParseHash(h.String())
	if err != nil || again != h {
		t.Errorf("ParseHash(%q) = %v, %v", h, again, err)
	}
	for _, s := range []string{"", "sha256:", h.String() + "0", h.String()[:70], "md5:" + h.String()[7:], strings.Replace(h.String(), ":", ":x", 1)} {
		if _, err := ParseHash(s); err == nil {
			t.Errorf("ParseHash(%q) succeeded", s)
		}
	}
	for _, s := range []string{"", "short", strings.Repeat("x", MinToken-1), strings.Repeat("x", MaxToken+1),
		strings.Repeat("x", MinToken) + " ", strings.Repeat("x", MinToken) + "\x7f", strings.Repeat("é", MinToken)} {
		if _, err := HashOf(s); err == nil {
			t.Errorf("HashOf(%q) succeeded", s)
		}
	}
}

func hash(t *testing.T, token string) Hash {
	t.Helper()
	h, err := HashOf(token)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

const (
	mailToken  = "mail-token-0123456789"
	adminToken = "admin-token-0123456789"
)

func testPolicy(t *testing.T) *Policy {
	t.Helper()
	p, err := New(Config{
		Identities: []IdentityConfig{
			{Name: "mailer", Tokens: []Hash{hash(t, mailToken)}, Certificates: []string{"mail.example.com"}},
			{Name: "admin", Tokens: []Hash{hash(t, adminToken)}, UnixUsers: []uint32{0}},
			{Name: "lan", Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
			{Name: "rack", Networks: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("fe80::/64")}},
		},
		Rules: []RuleConfig{
			{Identities: []string{"mailer"}, Tubes: []string{"mail", "mail-*", "m?"}, Rights: Put | Reserve},
			{Identities: []string{"mailer", "lan"}, Tubes: []string{"log.*"}, Rights: Put},
			{Identities: []string{"admin"}, Rights: All},
			{Identities: []string{"*"}, Tubes: []string{"public"}, Rights: Stats},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWho(t *testing.T) {
	p := testPolicy(t)
	named := func(cn string, dns ...string) *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{CommonName: cn}, DNSNames: dns}
	}
	for _, c := range []struct {
		what string
		ask  func() (*Identity, bool)
		want string // empty: nobody
	}{
		{"token", func() (*Identity, bool) { return p.ByToken(mailToken) }, "mailer"},
		{"another token", func() (*Identity, bool) { return p.ByToken(mailToken + "x") }, ""},
		{"no token", func() (*Identity, bool) { return p.ByToken("") }, ""},
		{"common name", func() (*Identity, bool) { return p.ByCertificate(named("mail.example.com")) }, "mailer"},
		{"DNS name", func() (*Identity, bool) { return p.ByCertificate(named("x", "y", "mail.example.com")) }, "mailer"},
		{"no name", func() (*Identity, bool) { return p.ByCertificate(named("")) }, ""},
		{"root", func() (*Identity, bool) { return p.ByUnixUser(0) }, "admin"},
		{"another user", func() (*Identity, bool) { return p.ByUnixUser(1) }, ""},
		{"wide network", func() (*Identity, bool) { return p.ByNetwork(netip.MustParseAddr("10.2.3.4")) }, "lan"},
		{"narrow network", func() (*Identity, bool) { return p.ByNetwork(netip.MustParseAddr("10.1.3.4")) }, "rack"},
		{"IPv4 in IPv6", func() (*Identity, bool) { return p.ByNetwork(netip.MustParseAddr("::ffff:10.1.3.4")) }, "rack"},
		{"IPv6", func() (*Identity, bool) { return p.ByNetwork(netip.MustParseAddr("fd12::1")) }, "rack"},
		{"link-local", func() (*Identity, bool) { return p.ByNetwork(netip.MustParseAddr("fe80::1%eth0")) }, "rack"},
		{"elsewhere", func() (*Identity, bool) { return p.ByNetwork(netip.MustParseAddr("192.0.2.1")) }, ""},
	} {
		id, ok := c.ask()
		got := ""
		if ok {
			got = id.Name()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

func TestMay(t *testing.T) {
	p := testPolicy(t)
	id := func(ask *Identity, ok bool) *Identity {
		if !ok {
			t.Fatal("nobody")
		}
		return ask
	}
	mailer, admin := id(p.ByToken(mailToken)), id(p.ByToken(adminToken))
	lan, rack := id(p.ByNetwork(netip.MustParseAddr("10.2.3.4"))), id(p.ByNetwork(netip.MustParseAddr("10.1.3.4")))
	for _, c := range []struct {
		who    *Identity
		rights Rights
		tube   string
		want   bool
	}{
		{mailer, Put, "mail", true},
		{mailer, Put | Reserve, "mail-out", true},
		{mailer, Put | Peek, "mail-out", false},
		{mailer, Reserve, "m1", true},
		{mailer, Reserve, "m12", false},
		{mailer, Put, "xmail", false},
		{mailer, Put, "mail/x", false},
		{mailer, Put, "log.a/b", true}, // * is any character
		{mailer, Put, "logxa", false},  // a dot is a dot
		{mailer, Reserve, "log.a", false},
		{mailer, Stats, "public", true},
		{lan, Put, "log.a", true},
		{rack, Put, "log.a", false},
		{rack, Stats, "public", true},
		{p.Nobody(), Stats, "public", true},
		{p.Nobody(), Put, "public", false},
		{admin, All, "anything", true},
		{mailer, None, "anything", true},
	} {
		if got := c.who.May(c.rights, c.tube); got != c.want {
			t.Errorf("may %q %s on %s: %v, want %v", c.who.Name(), c.rights, c.tube, got, c.want)
		}
	}
	if !mailer.MayAnywhere(Put|Reserve|Stats) || mailer.MayAnywhere(Manage) || !admin.MayAnywhere(All) || rack.MayAnywhere(Put) {
		t.Error("MayAnywhere is wrong")
	}
	if !admin.MayEverywhere(All) || mailer.MayEverywhere(Put) || rack.MayEverywhere(Stats) || !rack.MayEverywhere(None) {
		t.Error("MayEverywhere is wrong")
	}
	if !admin.Unrestricted() || mailer.Unrestricted() || p.Nobody().Unrestricted() {
		t.Error("Unrestricted is wrong")
	}
}

// TestNoRules is a server with tokens and nothing else, and one with nothing.
func TestNoRules(t *testing.T) {
	p, err := New(Config{Identities: []IdentityConfig{{Name: "a", Tokens: []Hash{hash(t, mailToken)}}}})
	if err != nil {
		t.Fatal(err)
	}
	a, ok := p.ByToken(mailToken)
	if !ok || !a.May(All, "x") || !a.Unrestricted() || !p.Nobody().MayAnywhere(All) {
		t.Error("without rules not everything is allowed")
	}
}

func TestBadConfig(t *testing.T) {
	token := []Hash{hash(t, mailToken)}
	for want, c := range map[string]Config{
		"identity 1: want a name":                 {Identities: []IdentityConfig{{Tokens: token}}},
		`not "*"`:                                 {Identities: []IdentityConfig{{Name: "*", Tokens: token}}},
		`identity "a" is there twice`:             {Identities: []IdentityConfig{{Name: "a", Tokens: token}, {Name: "a", Tokens: token}}},
		`identity "a": nothing identifies it`:     {Identities: []IdentityConfig{{Name: "a"}}},
		`"b": it has a token of identity "a"`:     {Identities: []IdentityConfig{{Name: "a", Tokens: token}, {Name: "b", Tokens: token}}},
		`it has a unix user of identity "a"`:      {Identities: []IdentityConfig{{Name: "a", UnixUsers: []uint32{7}}, {Name: "b", UnixUsers: []uint32{7}}}},
		`the network 10.0.0.0/8 of identity "a"`:  {Identities: []IdentityConfig{{Name: "a", Networks: prefixes("10.0.0.0/8")}, {Name: "b", Networks: prefixes("10.1.1.1/8")}}},
		`rule 1: there is no identity "x"`:        {Rules: []RuleConfig{{Identities: []string{"x"}, Rights: All}}},
		`rule 1: it allows nothing`:               {Rules: []RuleConfig{{Identities: []string{"*"}}}},
		`rule 1: it has no identities ("*" is ev`: {Rules: []RuleConfig{{Rights: All}}},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func prefixes(s ...string) (ps []netip.Prefix) {
	for _, s := range s {
		ps = append(ps, netip.MustParsePrefix(s))
	}
	return ps
}

func TestRights(t *testing.T) {
	r, err := ParseRights([]string{"put", "stats"})
	if err != nil || r != Put|Stats || r.String() != "put,stats" {
		t.Errorf("put and stats: %s, %v", r, err)
	}
	if r, err := ParseRights([]string{"all"}); err != nil || r != All || r.String() != "put,reserve,peek,manage,stats" {
		t.Errorf("all: %s, %v", r, err)
	}
	if _, err := ParseRights([]string{"write"}); err == nil || !strings.Contains(err.Error(), `no right "write"; the rights are put, `) {
		t.Error(err)
	}
	if None.String() != "none" {
		t.Error(None.String())
	}
}
