package conversation

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// readSize is the maximum number of bytes received at a time.
const readSize = 64 << 10

// A driver drives conversations with one engine, without sockets. Every step ends
// with a Check.
type driver struct {
	tb      testing.TB
	eng     *engine.Engine
	shared  Shared
	batch   *Batch
	now     int64
	waits   []*client // clients whose wait has ended
	taking  int       // number of bytes that a client reads at a time; 0 means all
	failing error     // error with which turns are settled

	dismissed []*client
}

func newDriver(tb testing.TB) *driver {
	d := &driver{tb: tb, eng: engine.New(engine.Options{Logged: true}), batch: NewBatch(1 << 10)}
	d.shared = Shared{MaxJobSize: 300_000, StallTimeout: time.Minute, Stats: func(*engine.Engine, *[wire.NumOps]uint64, Owner) *wire.ServerStats {
		return &wire.ServerStats{}
	}}
	tb.Cleanup(func() {
		if err := d.eng.Check(); err != nil {
			tb.Error(err)
		}
	})
	return d
}

// A client is a conversation and its replies.
type client struct {
	Conversation
	driver  *driver
	got     bytes.Buffer
	deaf    bool   // the client reads no replies
	unacked int    // number of unacknowledged bytes that the kernel reports
	pending []byte // input that did not fit into Space
}

func (d *driver) connect() *client {
	g := &client{driver: d}
	g.Conversation = New(&d.shared, g, "")
	return g.open()
}

func (g *client) open() *client {
	g.driver.now++
	g.Open(g.driver.now)
	g.OpenSession(g.driver.eng)
	g.Start()
	return g
}

func (g *client) WaitOver(job engine.Job, o engine.Outcome) {
	g.Answer(job, o)
	g.driver.waits = append(g.driver.waits, g)
}

func (g *client) Dismiss(reason error) { g.driver.dismissed = append(g.driver.dismissed, g) }

func (g *client) Unacknowledged() int { return g.unacked }

// turn runs a turn for the batch and settles it.
func (d *driver) turn() {
	d.tb.Helper()
	d.now++
	d.eng.Tick(d.now)
	d.now = d.batch.Apply(d.eng, d.now)
	d.eng.TakeChanges()
	d.batch.TurnOver()
	for i := range d.batch.Len() {
		d.batch.Owner(i).(*client).check()
	}
	d.batch.Settle(d.failing)
	all := make([]*client, d.batch.Len())
	for i := range all {
		all[i] = d.batch.Owner(i).(*client)
		all[i].write()
	}
	d.batch.Reset()
	for _, g := range d.waits {
		g.Answered(d.now, d.failing)
	}
	all = append(all, d.waits...)
	d.waits = nil
	for _, g := range all {
		g.proceed()
	}
}

func (g *client) check() {
	g.driver.tb.Helper()
	if err := g.Check(); err != nil {
		g.driver.tb.Fatal(err)
	}
}

// write lets the client read a piece of the replies.
func (g *client) write() {
	if g.State() != Writing {
		return
	}
	out := g.Output()
	if len(out) == 0 {
		g.driver.tb.Fatal("the output is empty while writing")
	}
	switch {
	case g.deaf:
		out = nil
	case g.driver.taking > 0:
		out = out[:min(len(out), g.driver.taking)]
	}
	g.got.Write(out)
	g.Wrote(g.driver.now, len(out))
	g.check()
}

// proceed performs the conversation's next steps until it needs input or ends.
func (g *client) proceed() {
	d := g.driver
	for {
		g.check()
		switch g.State() {
		case Writing:
			if g.deaf {
				return
			}
			g.write()
		case Ready:
			if g.Advance(d.batch, d.now); d.batch.Len() > 0 {
				d.turn()
			}
		case Reading:
			if len(g.pending) == 0 {
				return
			}
			input := g.pending
			g.pending = nil
			g.receive(input)
		case Lingering:
			if !g.Drained(d.now, 0, nil) {
				return
			}
		default:
			return
		}
	}
}

// resume advances the time until the conversation requires Advance.
func (g *client) resume() {
	d := g.driver
	d.now = max(d.now, g.Next())
	if g.Advance(d.batch, d.now); d.batch.Len() > 0 {
		d.turn()
	}
	g.proceed()
}

// send passes input to the conversation.
func (g *client) send(input string) {
	g.driver.tb.Helper()
	g.pending = append(g.pending, strings.ReplaceAll(input, "\n", "\r\n")...)
	g.proceed()
}

// receive passes input as a driver does: from its own buffer, which it reuses, or in
// Space. It keeps input that does not fit into Space.
func (g *client) receive(input []byte) {
	d := g.driver
	if g.Unread() {
		n := copy(g.Space(), input)
		g.pending = input[n:]
		g.Filled(d.now, n)
		return
	}
	n := min(len(input), readSize)
	buf := bytes.Clone(input[:n])
	g.pending = input[n:]
	g.Receive(d.batch, d.now, buf)
	if d.batch.Len() > 0 {
		d.turn()
	}
	clear(buf)
}

// want compares the replies since the last call.
func (g *client) want(replies string) {
	g.driver.tb.Helper()
	if got, want := g.got.String(), strings.ReplaceAll(replies, "\n", "\r\n"); got != want {
		g.driver.tb.Fatalf("got %.300q, want %.300q", got, want)
	}
	g.got.Reset()
}

func (g *client) wantState(s State) {
	g.driver.tb.Helper()
	if g.check(); g.State() != s {
		g.driver.tb.Fatalf("it is %v, want %v", g.State(), s)
	}
}

func (g *client) end() {
	g.End(g.driver.batch, errDisk)
	g.driver.turn()
	g.wantState(Closed)
}

var errDisk = errors.New("input/output error")
