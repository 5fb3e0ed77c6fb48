package conversation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/rights"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

func tokenOf(name string) string { return name + "-token-0123456789012345" }

// newPolicy returns a policy with the rules and an identity for each name.
func newPolicy(t testing.TB, rules []access.RuleConfig, names ...string) *access.Policy {
	t.Helper()
	var c access.Config
	for _, name := range names {
		h, err := access.HashOf(tokenOf(name))
		if err != nil {
			t.Fatal(err)
		}
		c.Identities = append(c.Identities, access.IdentityConfig{Name: name, Tokens: []access.Hash{h}})
	}
	c.Rules = rules
	p, err := access.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// An admission authenticates clients with a policy, and records refusals.
type admission struct {
	access.ListenerPolicy
	control *access.Control
	refused []string
}

func newAdmission(p *access.Policy) *admission {
	control, err := access.NewControl(p, nil)
	if err != nil {
		panic(err)
	}
	return &admission{control: control}
}

// admitted returns a client that an admission authenticates.
func (d *driver) admitted(p *admission) *client { return d.admittedAs(p, nil) }

// admittedAs is admitted for a client that already has an identity.
func (d *driver) admittedAs(p *admission, id *access.Identity) *client {
	d.shared.Access = p.control
	d.shared.Refused = func(c *Conversation, what string, tubes []string) {
		p.refused = append(p.refused, fmt.Sprintf("%q: %s %s", c.Identity(), what, strings.Join(tubes, " ")))
	}
	g := &client{driver: d}
	g.Conversation = New(&d.shared, g, "")
	g.Admit(&p.ListenerPolicy, id)
	return g.open()
}

func TestAuth(t *testing.T) {
	p := newAdmission(newPolicy(t, nil, "a"))
	p.Required = true
	for _, c := range []struct{ what, send, want string }{
		{"auth", "auth TOKEN\nput 0 0 9 5\nhello\n", "AUTHENTICATED\nINSERTED 1\n"},
		{"auth and a body that a stranger could not send", "auth TOKEN\nput 0 0 9 1000\n" + strings.Repeat("x", 1000) + "\n", "AUTHENTICATED\nINSERTED 1\n"},
		{"twice", "auth TOKEN\nauth TOKEN\nlist-tube-used\n", "AUTHENTICATED\nAUTHENTICATED\nUSING default\n"},
		{"a wrong token", "auth TOKENx\nput 0 0 9 5\nhello\n", "UNAUTHORIZED\n"},
		{"a wrong token later", "auth TOKEN\nauth x\nput 0 0 9 5\nhello\n", "AUTHENTICATED\nUNAUTHORIZED\n"},
		{"no token", "auth \nlist-tubes\n", "UNAUTHORIZED\n"},
		{"auth alone", "auth\nlist-tubes\n", "UNAUTHORIZED\n"},
		{"a command", "list-tubes\nlist-tubes\n", "UNAUTHORIZED\n"},
		{"a put", "put 0 0 9 5\nhello\n", "UNAUTHORIZED\n"},
		{"a large put", "put 0 0 9 1000\n" + strings.Repeat("x", 1000) + "\nlist-tubes\n", "UNAUTHORIZED\n"},
		{"nonsense", "nonsense\n", "UNAUTHORIZED\n"},
		{"a long line", strings.Repeat("x", 300) + "\n", "UNAUTHORIZED\n"},
		{"quit", "quit\n", ""},
		{"HTTP", "POST / HTTP/1.1\n", ""},
		{"a put of the token", "put 0 0 9 24\nTOKEN\n", "UNAUTHORIZED\n"}, // TokenInPut is off
	} {
		d := newDriver(t)
		g := d.admitted(p)
		g.send(strings.ReplaceAll(c.send, "TOKEN", tokenOf("a")))
		if got := strings.ReplaceAll(g.got.String(), "\r", ""); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
		if done := g.State() == Closed; done != !strings.HasPrefix(c.want, "AUTHENTICATED") && !done {
			t.Errorf("%s: %v", c.what, g.State())
		}
		if n := d.eng.Stats().TotalJobs; n > uint64(strings.Count(c.want, "INSERTED")) {
			t.Errorf("%s: %d jobs were put", c.what, n)
		}
		if c.want == "UNAUTHORIZED\n" {
			for op, n := range d.shared.commands {
				if n > 0 {
					t.Errorf("%s: %v was counted", c.what, wire.Op(op))
				}
			}
		}
		g.end()
	}
}

func TestTokenInPut(t *testing.T) {
	p := newAdmission(newPolicy(t, nil, "a", "b"))
	p.Required, p.TokenInPut = true, true
	put := func(body string) string { return fmt.Sprintf("put 0 0 9 %d\n%s\n", len(body), body) }
	token := put(tokenOf("a"))

	d := newDriver(t)
	g := d.admitted(p)
	g.send(token + put("hello"))
	g.want("INSERTED 0\nINSERTED 1\n")
	g.end()
	g = d.admitted(p)
	g.send(put("\t"+tokenOf("a")+"  ") + put("hello")) // like the line feed of "echo TOKEN"
	g.want("INSERTED 0\nINSERTED 2\n")
	g.end()
	g = d.admitted(p)
	g.send(put("wrong") + token)
	g.want("UNAUTHORIZED\n")
	g.wantState(Closed)
	g.end()
}

// A token in a put never becomes a job, for any identity of the client, whether or not
// authentication is required.
func TestTokenIsNotAJob(t *testing.T) {
	p := newAdmission(newPolicy(t, nil, "a", "b"))
	p.TokenInPut = true
	b, _ := p.control.Identify(access.Credentials{Token: []byte(tokenOf("b"))})
	put := func(body string) string { return fmt.Sprintf("put 0 0 9 %d\n%s\n", len(body), body) }
	for _, required := range []bool{false, true} {
		for _, known := range []*access.Identity{nil, b} {
			p.Required = required
			d := newDriver(t)
			g := d.admittedAs(p, known)
			token := put(tokenOf("a"))
			if known != nil || !required {
				g.send("use x\n")
				g.want("USING x\n")
			}
			for _, half := range []string{token[:20], token[20:]} {
				g.send(half)
			}
			g.want("INSERTED 0\n")
			if name := g.Identity(); name != "a" {
				t.Errorf("it is %q", name)
			}
			g.send("use y\n" + token + put("hello") + put(tokenOf("a")+"x"))
			g.want("USING y\nINSERTED 0\nINSERTED 1\nINSERTED 2\n")
			if n := d.eng.Stats().TotalJobs; n != 2 {
				t.Errorf("%d jobs were put, want 2", n)
			}
			g.end()
		}
	}
}

// Without access control, auth gets the same reply as from beanstalkd.
func TestNoTerms(t *testing.T) {
	g := newDriver(t).connect()
	g.send("auth x\nuse a\n")
	g.want("UNKNOWN_COMMAND\nUSING a\n")
	g.end()
}

// A client that does not authenticate has ten seconds, regardless of its input.
func TestAuthTimeout(t *testing.T) {
	p := newAdmission(newPolicy(t, nil, "a"))
	p.Required = true
	d := newDriver(t)
	g, friend := d.admitted(p), d.admitted(p)
	friend.send("auth " + tokenOf("a") + "\n")
	d.now += int64(9 * time.Second)
	g.send("au")
	if at, _ := g.deadline(); at != g.progress.opened+int64(AuthTimeout) {
		t.Errorf("the deadline is %d", at)
	}
	if _, reason := g.deadline(); reason != ErrNoAuth {
		t.Errorf("the reason is %v", reason)
	}
	if _, reason := friend.deadline(); reason == ErrNoAuth {
		t.Error("an authenticated client has the deadline")
	}
	g.end()
	friend.end()
}

// verbs contains all commands, for a client that uses and watches the tube default, where
// job 1 is ready and the client holds job 2. The required rights are repeated here on
// purpose.
var verbs = []struct {
	send string
	want string // start of the reply to an allowed command
	any  bool   // any one of the rights is enough
	need rights.Set
}{
	{"put 0 0 9 1\nx\n", "INSERTED", false, rights.Put},
	{"use default\n", "USING default", true, rights.Put | rights.Peek | rights.Manage | rights.Stats},
	{"watch default\n", "WATCHING", false, rights.Reserve},
	{"ignore other\n", "WATCHING 1", false, rights.None},
	{"reserve\n", "RESERVED 1", false, rights.Reserve},
	{"reserve-with-timeout 0\n", "RESERVED 1", false, rights.Reserve},
	{"reserve-batch 5\n", "RESERVED_BATCH 1\r\nRESERVED 1", false, rights.Reserve},
	{"caps\n", "OK ", false, rights.None},
	{"want tube\n", "OK\r\n", false, rights.None},
	{"delete-batch 99\n", "DELETED_BATCH 0 1", false, rights.None},
	{"reserve-job 1\n", "RESERVED 1", false, rights.Reserve},
	{"delete 1\n", "DELETED", true, rights.Reserve | rights.Manage},
	{"delete 2\n", "DELETED", true, rights.Reserve | rights.Manage},
	{"release 2 0 0\n", "RELEASED", false, rights.Reserve},
	{"bury 2 0\n", "BURIED", false, rights.Reserve},
	{"touch 2\n", "TOUCHED", false, rights.Reserve},
	{"note 2 why\n", "NOTED", false, rights.Reserve},
	{"kick 1\n", "KICKED 0", false, rights.Manage},
	{"kick-job 1\n", "NOT_FOUND", false, rights.Manage},
	{"pause-tube default 0\n", "PAUSED", false, rights.Manage},
	{"list-jobs default ready\n", "OK ", false, rights.Stats},
	{"flush-tube default\n", "FLUSHED 1", false, rights.Manage},
	{"move-jobs default default2 ready\n", "MOVED 1", false, rights.Manage},
	{"peek 1\n", "FOUND 1", false, rights.Peek},
	{"peek-ready\n", "FOUND 1", false, rights.Peek},
	{"peek-delayed\n", "NOT_FOUND", false, rights.Peek},
	{"peek-buried\n", "NOT_FOUND", false, rights.Peek},
	{"stats\n", "OK ", false, rights.Stats},
	{"stats-tube default\n", "OK ", false, rights.Stats},
	{"stats-job 1\n", "OK ", true, rights.Reserve | rights.Stats},
	{"list-tubes\n", "OK ", false, rights.Stats},
	{"list-tube-used\n", "USING default", false, rights.None},
	{"list-tubes-watched\n", "OK ", false, rights.None},
	{"peek 99\n", "NOT_FOUND", false, rights.None},
	{"nonsense\n", "UNKNOWN_COMMAND", false, rights.None},
	{"kick x\n", "BAD_FORMAT", false, rights.None},
	{"flush-tube x any\n", "BAD_FORMAT", false, rights.None},
}

// TestRights tries each verb with each of the 32 sets of rights.
func TestRights(t *testing.T) {
	for set := rights.None; set <= rights.All; set++ {
		rules := []access.RuleConfig{{Identities: []string{"admin"}, Tubes: []string{"*"}, Rights: rights.All}}
		if set != rights.None {
			rules = append(rules, access.RuleConfig{Identities: []string{"a"}, Tubes: []string{"def*"}, Rights: set})
		}
		p := newAdmission(newPolicy(t, rules, "a", "admin"))
		for _, v := range verbs {
			d := newDriver(t)
			g := d.admitted(p)
			// The admin prepares the state. Then the client gets the other identity.
			g.send("auth " + tokenOf("admin") + "\nput 0 0 9 1\nx\nput 5 0 9 1\ny\nreserve-job 2\n")
			a, _ := p.control.Identify(access.Credentials{Token: []byte(tokenOf("a"))})
			g.identity = a
			g.got.Reset()
			before := d.eng.Stats()
			p.refused = nil
			g.send(v.send)
			reply := g.got.String()
			allowed := v.need&^set == 0
			if v.any {
				allowed = v.need&set != 0
			}
			switch {
			case allowed && !strings.HasPrefix(reply, v.want):
				t.Errorf("with %s: %q: reply %q, want %q", set, v.send, reply, v.want)
			case !allowed && reply != "UNAUTHORIZED\r\n":
				t.Errorf("with %s: %q: reply %q", set, v.send, reply)
			case !allowed && d.eng.Stats() != before:
				t.Errorf("with %s: %q was refused and changed something", set, v.send)
			case !allowed && len(p.refused) != 1 || allowed && len(p.refused) > 0:
				t.Errorf("with %s: %q: refused %q", set, v.send, p.refused)
			}
			g.wantState(Reading)
			g.end()
		}
	}
}

// A client deletes the permitted jobs of a batch, and the reply does not reveal the
// others.
func TestRightsOfABatch(t *testing.T) {
	rules := []access.RuleConfig{{Identities: []string{"a"}, Tubes: []string{"mine"}, Rights: rights.Put | rights.Manage}, {Identities: []string{"a"}, Tubes: []string{"theirs"}, Rights: rights.Put}}
	p := newAdmission(newPolicy(t, rules, "a"))
	d := newDriver(t)
	g := d.admitted(p)
	g.send("auth " + tokenOf("a") + "\nuse theirs\nput 0 0 9 0\n\nuse mine\nput 0 0 9 0\n\nput 0 0 9 0\n\ndelete-batch 3 1 2 9\ndelete 1\n")
	g.want("AUTHENTICATED\nUSING theirs\nINSERTED 1\nUSING mine\nINSERTED 2\nINSERTED 3\nDELETED_BATCH 2 2\nUNAUTHORIZED\n")
	g.end()
}

// The initial watch of the tube default grants no access. Tubes that were watched before
// auth grant no access either.
func TestWatchedTubes(t *testing.T) {
	rules := []access.RuleConfig{
		{Identities: []string{"a"}, Tubes: []string{"mine"}, Rights: rights.Reserve},
		{Identities: []string{"*"}, Tubes: []string{"public"}, Rights: rights.Reserve},
	}
	p := newAdmission(newPolicy(t, rules, "a"))
	d := newDriver(t)
	g := d.admitted(p)
	g.send("watch mine\nwatch public\nauth " + tokenOf("a") + "\nwatch mine\nreserve-with-timeout 0\nignore default\nreserve-with-timeout 0\n")
	g.want("UNAUTHORIZED\nWATCHING 2\nAUTHENTICATED\nWATCHING 3\nUNAUTHORIZED\nWATCHING 2\nTIMED_OUT\n")
	g.end()

	// The client's network permits it to watch the tube, but its token does not.
	admin := newAdmission(newPolicy(t, nil, "admin"))
	id, _ := admin.control.Identify(access.Credentials{Token: []byte(tokenOf("admin"))})
	g = d.admittedAs(p, id)
	g.send("watch other\nauth " + tokenOf("a") + "\nreserve\n")
	g.want("WATCHING 2\nUNAUTHORIZED\n")
	g.wantState(Closed)
	g.end()
}

// A report of a refusal names its tubes. Changes of a tube, or of many jobs, are also
// reported.
func TestRefusalsAndChanges(t *testing.T) {
	rules := []access.RuleConfig{
		{Identities: []string{"a"}, Tubes: []string{"mine*"}, Rights: rights.All},
		{Identities: []string{"*"}, Tubes: []string{"default"}, Rights: rights.Put | rights.Reserve},
	}
	p := newAdmission(newPolicy(t, rules, "a"))
	d := newDriver(t)
	var changes []string
	d.shared.Changed = func(c *Conversation, command wire.Op, what ...any) {
		changes = append(changes, strings.TrimSpace(fmt.Sprintf("%q: %v %v", c.Identity(), command, what)))
	}
	g := d.admitted(p)
	g.send("put 0 0 9 1\nx\npeek 1\nkick 1\nstats\npause-tube mine 1\nauth " + tokenOf("a") + "\nmove-jobs mine other ready\nkick-job 1\n")
	for i, want := range []string{`"": peek default`, `"": kick default`, `"": stats `, `"": pause-tube mine`, `"a": move-jobs mine other`, `"a": kick-job default`} {
		if i >= len(p.refused) || p.refused[i] != want {
			t.Errorf("refused %q, want %s at %d", p.refused, want, i)
		}
	}
	if len(changes) > 0 {
		t.Errorf("a refused command had an effect: %q", changes)
	}
	g.send("use mine\n" + strings.Repeat("put 0 0 9 1\nx\n", 5) + strings.Repeat("put 0 100 9 1\nx\n", 3) +
		"kick 1\nkick 9\nkick 9\npause-tube mine 7\npause-tube mine2 7\nmove-jobs mine mine2 ready 3\nflush-tube mine\nflush-tube mine\nflush-tube mine2 ready 1\n")
	want := []string{`"a": kick [tube mine count 2]`, `"a": pause-tube [tube mine seconds 7]`, `"a": move-jobs [tube mine to mine2 state ready count 3]`,
		`"a": flush-tube [tube mine count 5]`, `"a": flush-tube [tube mine2 state ready count 1]`}
	if !slices.Equal(changes, want) {
		t.Errorf("changes\n%s\nwant\n%s", strings.Join(changes, "\n"), strings.Join(want, "\n"))
	}
	g.end()
}

// Without a token, no input of a client, in any pieces, is executed or authenticates the
// client.
func FuzzAuth(f *testing.F) {
	f.Add("auth x\r\nput 0 0 9 1\r\nx\r\n", 3, true)
	f.Add("put 0 0 9 20\r\nxxxxxxxxxxxxxxxxxxxx\r\nlist-tubes\r\n", 7, true)
	f.Add("auth "+strings.Repeat("x", 218)+"\r\nuse a\r\n", 100, false)
	f.Add("auth\x00x\r\n\r\nquit\r\n", 1, false)
	f.Add("put 0 0 9 100000\r\nx", 5, true)
	f.Fuzz(func(t *testing.T, talk string, piece int, inPut bool) {
		if len(talk) > 4<<10 || piece <= 0 || strings.Contains(talk, tokenOf("a")) {
			t.Skip()
		}
		p := newAdmission(newPolicy(t, nil, "a"))
		p.Required, p.TokenInPut = true, inPut
		d := newDriver(t)
		before := d.eng.Stats()
		g := d.admitted(p)
		for rest := talk; len(rest) > 0 && g.State() == Reading; {
			n := min(piece, len(rest))
			g.receiveAll([]byte(rest[:n]))
			rest = rest[n:]
		}
		if got := g.got.String(); got != "" && got != "UNAUTHORIZED\r\n" {
			t.Errorf("an unauthenticated client got the reply %q", got)
		}
		if st := d.eng.Stats(); st.TotalJobs != before.TotalJobs || st.Tubes != before.Tubes || st.Producers+st.Workers > 0 {
			t.Errorf("an unauthenticated client changed the state: %+v", st)
		}
		g.end()
	})
}
