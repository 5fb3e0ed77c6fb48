package access

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net/netip"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/rights"
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
			{Identities: []string{"mailer"}, Tubes: []string{"mail", "mail-*", "m?"}, Rights: rights.Put | rights.Reserve},
			{Identities: []string{"mailer", "lan"}, Tubes: []string{"log.*"}, Rights: rights.Put},
			{Identities: []string{"admin"}, Tubes: []string{"*"}, Rights: rights.All},
			{Identities: []string{"*"}, Tubes: []string{"public"}, Rights: rights.Stats},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestIdentify identifies clients by their credentials. Their precedence is the order in
// doc/security.md.
func TestIdentify(t *testing.T) {
	p := testPolicy(t)
	named := func(cn string, dns ...string) *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{CommonName: cn}, DNSNames: dns}
	}
	from := netip.MustParseAddr
	for _, c := range []struct {
		what  string
		shown Credentials
		want  string // empty for a client without an identity
	}{
		{"token", Credentials{Token: []byte(mailToken)}, "mailer"},
		{"another token", Credentials{Token: []byte(mailToken + "x")}, ""},
		{"no token", Credentials{Token: []byte{}}, ""},
		{"common name", Credentials{Certificate: named("mail.example.com")}, "mailer"},
		{"DNS name", Credentials{Certificate: named("x", "y", "mail.example.com")}, "mailer"},
		{"no name", Credentials{Certificate: named("")}, ""},
		{"root", Credentials{User: UnixUser{0, true}}, "admin"},
		{"another user", Credentials{User: UnixUser{1, true}}, ""},
		{"wide network", Credentials{Address: from("10.2.3.4")}, "lan"},
		{"narrow network", Credentials{Address: from("10.1.3.4")}, "rack"},
		{"IPv4 in IPv6", Credentials{Address: from("::ffff:10.1.3.4")}, "rack"},
		{"IPv6", Credentials{Address: from("fd12::1")}, "rack"},
		{"link-local", Credentials{Address: from("fe80::1%eth0")}, "rack"},
		{"elsewhere", Credentials{Address: from("192.0.2.1")}, ""},
		{"nothing", Credentials{}, ""},
		{"all", Credentials{[]byte(adminToken), named("mail.example.com"), UnixUser{0, true}, from("10.1.3.4")}, "admin"},
		{"all but the token", Credentials{nil, named("mail.example.com"), UnixUser{0, true}, from("10.1.3.4")}, "mailer"},
		{"a user and a network", Credentials{nil, named("x"), UnixUser{0, true}, from("10.1.3.4")}, "admin"},
		{"a wrong token, and all else", Credentials{[]byte(mailToken + "x"), named("mail.example.com"), UnixUser{0, true}, from("10.1.3.4")}, ""},
	} {
		id, known := p.Identify(c.shown)
		if id.Name() != c.want || known != (c.want != "") {
			t.Errorf("%s: %q, %v, want %q", c.what, id.Name(), known, c.want)
		}
	}
}

func TestMeets(t *testing.T) {
	p := testPolicy(t)
	id := func(e Credentials) *Identity {
		id, known := p.Identify(e)
		if !known {
			t.Fatal("no identity")
		}
		return id
	}
	mailer, admin := id(Credentials{Token: []byte(mailToken)}), id(Credentials{Token: []byte(adminToken)})
	lan, rack := id(Credentials{Address: netip.MustParseAddr("10.2.3.4")}), id(Credentials{Address: netip.MustParseAddr("10.1.3.4")})
	const put, reserve, peek, manage, stats = rights.Put, rights.Reserve, rights.Peek, rights.Manage, rights.Stats
	for _, c := range []struct {
		who  *Identity
		set  rights.Set
		tube string
		want bool
	}{
		{mailer, put, "mail", true},
		{mailer, put | reserve, "mail-out", true},
		{mailer, put | peek, "mail-out", false},
		{mailer, reserve, "m1", true},
		{mailer, reserve, "m12", false},
		{mailer, put, "xmail", false},
		{mailer, put, "mail/x", false},
		{mailer, put, "log.a/b", true}, // * is any character
		{mailer, put, "logxa", false},  // a dot matches only a dot
		{mailer, reserve, "log.a", false},
		{mailer, stats, "public", true},
		{lan, put, "log.a", true},
		{rack, put, "log.a", false},
		{rack, stats, "public", true},
		{p.Nobody(), stats, "public", true},
		{p.Nobody(), put, "public", false},
		{admin, rights.All, "anything", true},
		{mailer, rights.None, "anything", true},
	} {
		if got := c.who.Meets(c.set.On(rights.NamedTube), c.tube); got != c.want {
			t.Errorf("%q has %s on %s: %v, want %v", c.who.Name(), c.set, c.tube, got, c.want)
		}
	}
	for _, c := range []struct {
		who   *Identity
		need  rights.Need
		tubes []string
		want  bool
	}{
		{mailer, (put | peek).AnyOn(rights.NamedTube), []string{"mail"}, true},
		{mailer, (manage | peek).AnyOn(rights.NamedTube), []string{"mail"}, false},
		{mailer, put.On(rights.TwoTubes), []string{"mail", "log.a"}, true},
		{mailer, put.On(rights.TwoTubes), []string{"mail", "other"}, false},
		{mailer, put.On(rights.TwoTubes), []string{"other", "mail"}, false},
		{mailer, peek.On(rights.TubeOfJob), nil, true}, // the job does not exist
		{mailer, peek.On(rights.Unstated), nil, false},
		{mailer, rights.Need{}, nil, false},
		{mailer, rights.Free, nil, true},
		{mailer, (put | reserve | stats).On(rights.SomeTube), nil, true},
		{mailer, manage.On(rights.SomeTube), nil, false},
		{rack, put.On(rights.SomeTube), nil, false},
		{admin, rights.All.On(rights.EveryTube), nil, true},
		{mailer, put.On(rights.EveryTube), nil, false},
		{rack, stats.On(rights.EveryTube), nil, false},
	} {
		if got := c.who.Meets(c.need, c.tubes...); got != c.want {
			t.Errorf("%q, %+v, %q: %v, want %v", c.who.Name(), c.need, c.tubes, got, c.want)
		}
	}
}

// TestNoRules covers a server that has only tokens, and a server without access settings.
func TestNoRules(t *testing.T) {
	p, err := New(Config{Identities: []IdentityConfig{{Name: "a", Tokens: []Hash{hash(t, mailToken)}}}})
	if err != nil {
		t.Fatal(err)
	}
	a, ok := p.Identify(Credentials{Token: []byte(mailToken)})
	everything := rights.All.On(rights.EveryTube)
	if !ok || !a.Meets(everything) || !p.Nobody().Meets(everything) {
		t.Error("without rules not everything is allowed")
	}
}

func TestBadConfig(t *testing.T) {
	token := []Hash{hash(t, mailToken)}
	for want, c := range map[string]Config{
		"identity 1: want a name":                  {Identities: []IdentityConfig{{Tokens: token}}},
		`not "*"`:                                  {Identities: []IdentityConfig{{Name: "*", Tokens: token}}},
		`identity "a" is defined twice`:            {Identities: []IdentityConfig{{Name: "a", Tokens: token}, {Name: "a", Tokens: token}}},
		`identity "a": no credentials`:             {Identities: []IdentityConfig{{Name: "a"}}},
		`"b": it shares a token with identity "a"`: {Identities: []IdentityConfig{{Name: "a", Tokens: token}, {Name: "b", Tokens: token}}},
		`it shares a unix user with identity "a"`:  {Identities: []IdentityConfig{{Name: "a", UnixUsers: []uint32{7}}, {Name: "b", UnixUsers: []uint32{7}}}},
		`the network 10.0.0.0/8 with identity "a"`: {Identities: []IdentityConfig{{Name: "a", Networks: prefixes("10.0.0.0/8")}, {Name: "b", Networks: prefixes("10.1.1.1/8")}}},
		`rule 1: unknown identity "x"`:             {Rules: []RuleConfig{{Identities: []string{"x"}, Tubes: []string{"*"}, Rights: rights.All}}},
		`rule 1: no tubes; use "*" for every t`:    {Rules: []RuleConfig{{Identities: []string{"*"}, Rights: rights.All}}},
		`rule 1: no rights; list at least one`:     {Rules: []RuleConfig{{Identities: []string{"*"}}}},
		`rule 1: no identities; use "*" for ev`:    {Rules: []RuleConfig{{Rights: rights.All}}},
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

// A policy that disables access control does not take effect while the server runs.
// Neither does the first policy that enables it.
func TestReplace(t *testing.T) {
	token := []IdentityConfig{{Name: "a", Tokens: []Hash{hash(t, mailToken)}}}
	rule := []RuleConfig{{Identities: []string{"*"}, Tubes: []string{"*"}, Rights: rights.Put}}
	policy := func(c Config) *Policy {
		p, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	none, both := policy(Config{}), policy(Config{Identities: token, Rules: rule})
	for _, c := range []struct {
		what      string
		old, to   *Policy
		want      string // a part of the error
		wantAsked bool
	}{
		{"the same", both, both, "", true},
		{"no rule", both, policy(Config{Identities: token}), "no longer has a [[rule]]", true},
		{"no identity", both, policy(Config{Rules: rule}), "no longer has an [[identity]]", true},
		{"nothing", both, none, "no longer has an [[identity]]", true},
		{"the first rule", policy(Config{Identities: token}), both, "", true},
		{"the first policy", none, both, "", false},
	} {
		control, err := NewControl(c.old, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = control.Replace(c.to)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", c.what, err, c.want)
		}
		if control.Enabled() != c.wantAsked {
			t.Errorf("%s: clients must authenticate: %v", c.what, control.Enabled())
		}
	}
	if _, err := NewControl(none, []ListenerPolicy{{}, {Required: true}}); err == nil || !strings.Contains(err.Error(), "require-auth needs an [[identity]]") {
		t.Error(err)
	}
}

// If there are identities, the admin API requires one.
func TestDemand(t *testing.T) {
	none, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := New(Config{Rules: []RuleConfig{{Identities: []string{"*"}, Tubes: []string{"*"}, Rights: rights.Stats}}})
	if err != nil {
		t.Fatal(err)
	}
	from, token := Credentials{Address: netip.MustParseAddr("192.0.2.1")}, Credentials{Token: []byte(mailToken)}
	wrong := Credentials{Token: []byte("x" + mailToken), Address: netip.MustParseAddr("10.1.1.1")}
	for _, c := range []struct {
		what   string
		policy *Policy
		shown  Credentials
		want   string // "-" if the client is refused
	}{
		{"no configuration", none, from, ""},
		{"a token without a configuration", none, token, ""},
		{"rules alone", rules, from, ""},
		{"a token, and rules alone", rules, token, "-"},
		{"no credentials", testPolicy(t), Credentials{}, "-"},
		{"a stranger", testPolicy(t), from, "-"},
		{"a token", testPolicy(t), token, "mailer"},
		{"a wrong token from a known network", testPolicy(t), wrong, "-"},
	} {
		control, err := NewControl(c.policy, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := "-"
		if id, ok := control.RequireIdentity(c.shown); ok {
			got = id.Name()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}
