package conversation

import (
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/access"
)

// A meter is a Limiter: a token comes every so many ns, and there are never more than
// the burst.
type meter struct {
	every int64
	burst int64
	used  int64 // until when the tokens are taken, if there were no burst
}

func (m *meter) Tokens(now int64) int {
	return int(max(0, (now+m.burst*m.every-max(m.used, now))/m.every))
}

func (m *meter) Take(now int64, n int) (at int64) {
	m.used = max(m.used, now) + int64(n)*m.every
	return max(now, m.used-m.burst*m.every)
}

func (m *meter) GiveBack(n int) { m.used -= int64(n) * m.every }

// What is beyond the limit is executed when it may, in its order, and is not asked for
// before: the client is not told anything of the limit.
func TestThrottled(t *testing.T) {
	const every, burst, n = 1_000_000, 10, 300
	d := newDriver(t)
	c := d.connect()
	c.Limit(&meter{every: every, burst: burst})
	begun := d.now
	c.send(strings.Repeat("use x\n", n))
	for done := 0; ; {
		done += strings.Count(c.got.String(), "USING x\r\n")
		c.got.Reset()
		if most := burst + int((d.now-begun)/every); done > most {
			t.Fatalf("%d commands after %d ns, want %d at most", done, d.now-begun, most)
		}
		if c.State() == Reading && done == n {
			break
		}
		c.wantState(Throttled)
		c.resume()
	}
	if took := d.now - begun; took > n*every {
		t.Errorf("%d commands took %d ns", n, took)
	}
}

// Those who share a limiter take turns: each gets its part, and each that is woken can
// give a command.
func TestSharedLimiter(t *testing.T) {
	const every, commands = 1_000_000, 40
	d := newDriver(t)
	limiter := &meter{every: every, burst: 1}
	var clients [5]*client
	for i := range clients {
		clients[i] = d.connect()
		clients[i].Limit(limiter)
		clients[i].send(strings.Repeat("use x\n", commands))
	}
	for range len(clients) * commands {
		var next *client
		for _, g := range clients {
			if g.State() == Throttled && (next == nil || g.Next() < next.Next()) {
				next = g
			}
		}
		if next == nil {
			break
		}
		had := next.got.Len()
		if next.resume(); next.got.Len() == had && had < commands*len("USING x\r\n") {
			t.Fatal("a client was woken for nothing")
		}
		for _, g := range clients {
			if n, most := g.got.Len(), next.got.Len()+3*len("USING x\r\n"); n > most {
				t.Fatalf("one client has %d bytes of replies, another %d", n, next.got.Len())
			}
		}
	}
	for _, g := range clients {
		g.want(strings.Repeat("USING x\n", commands))
	}
}

// Those who go before their turn has come leave it to the others: however many there have
// been, the next one waits no longer than for the command before. The same is true for
// those who turn out to have a limiter of their own.
func TestTokensAreGivenBack(t *testing.T) {
	const every = 1_000_000_000
	d := newDriver(t)
	limiter := &meter{every: every, burst: 1}
	for range 100 {
		c := d.connect()
		c.Limit(limiter)
		c.send("use x\nuse y\nuse z\n")
		c.wantState(Throttled)
		c.end()
	}
	c := d.connect()
	c.Limit(limiter)
	c.send("use x\nuse y\n")
	c.wantState(Throttled)
	if wait := c.Next() - d.now; wait > every {
		t.Errorf("the next command may come in %d ns, want %d at most", wait, every)
	}

	p, auth := limitedAdmission(t, access.Limits{})
	limiter = &meter{every: every, burst: 1}
	for range 100 {
		c := d.admitted(p)
		c.Limit(limiter)
		c.send(auth)
		for c.State() == Throttled {
			c.resume()
		}
		c.want("AUTHENTICATED\n")
	}
	if n := limiter.Tokens(d.now + every); n != 1 {
		t.Errorf("there are %d tokens a second later, want 1", n)
	}
}

// A reserve that waits, a long kick, a quit and replies that are not read go well with
// a limit.
func TestThrottledStates(t *testing.T) {
	d := newDriver(t)
	producer := d.connect()
	limited := func() *client {
		c := d.connect()
		c.Limit(&meter{every: 1_000_000_000, burst: 1})
		return c
	}

	c := limited()
	c.send("reserve\nuse x\n")
	c.wantState(Waiting)
	producer.send("put 0 0 9 1\na\n")
	c.want("RESERVED 1 1\na\n")
	c.wantState(Throttled)
	c.resume()
	c.want("USING x\n")
	c.wantState(Throttled)
	c.end()

	c = limited()
	c.send("quit\nuse x\n")
	c.wantState(Closed)

	c = limited()
	c.deaf = true
	c.send("use x\nuse y\n")
	c.wantState(Writing)
	c.deaf = false
	d.now += 2_000_000_000
	c.proceed()
	c.want("USING x\nUSING y\n")

	producer.send("use many\n" + strings.Repeat("put 0 1000 9 1\na\n", 2000))
	c = d.connect()
	c.send("use many\n")
	c.want("USING many\n")
	c.Limit(&meter{every: 1_000_000_000, burst: 1})
	c.send("kick 2000\nuse x\n")
	c.want("KICKED 2000\n")
	c.wantState(Throttled)
	c.resume()
	c.want("USING x\n")
}

// Whoever says who it is has the limiter of its identity from then on.
func TestLimiterOfIdentity(t *testing.T) {
	d := newDriver(t)
	p, auth := limitedAdmission(t, access.Limits{OfIdentity: map[string]int{"mailer": 1}})
	c := d.admitted(p)
	c.send("use x\nuse x\n" + auth)
	c.want("USING x\nUSING x\nAUTHENTICATED\n")
	c.send("use y\nuse z\n")
	c.want("USING y\n")
	c.wantState(Throttled)
	c.end()
	// Also for what comes along with its token.
	d.now += 2_000_000_000
	c = d.admitted(p)
	c.send(auth + "use x\nuse y\n")
	c.want("AUTHENTICATED\nUSING x\n")
	c.wantState(Throttled)
}

// limitedAdmission returns an admission that knows one identity, which has the limits, and the command
// by which a client says that it is that.
func limitedAdmission(t *testing.T, l access.Limits) (p *admission, auth string) {
	t.Helper()
	p = newAdmission(newPolicy(t, nil, "mailer"))
	p.control.SetLimits(0, l)
	return p, "auth " + tokenOf("mailer") + "\n"
}
