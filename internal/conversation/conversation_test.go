package conversation

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

func TestCommands(t *testing.T) {
	d := newDriver(t)
	g := d.connect()
	g.wantState(Reading)
	g.send("put 1 0 9 5\nhello\nreserve\npeek 1\n")
	g.want("INSERTED 1\nRESERVED 1 5\nhello\nFOUND 1 5\nhello\n")
	g.wantState(Reading)
	g.send("use a\nwat")
	g.want("USING a\n")
	g.wantState(Reading)
	g.send("ch b\nnonsense\nquit\nuse never\n")
	g.want("WATCHING 2\nUNKNOWN_COMMAND\n")
	g.wantState(Closed)
	if g.Reason() != ErrQuit {
		t.Errorf("reason %v", g.Reason())
	}
	g.end()
}

// The replies depend neither on the pieces in which the input arrives nor on the client's
// reading speed.
func TestAnyPieces(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		input := drawInput(rt)
		whole := newDriver(t).connect()
		whole.receiveAll(input)

		d := newDriver(t)
		g := d.connect()
		d.taking = rapid.SampledFrom([]int{0, 1, 7, 100_000}).Draw(rt, "taken at a time")
		for rest := input; len(rest) > 0 && g.State() != Closed; {
			n := min(len(rest), rapid.OneOf(rapid.IntRange(1, 30), rapid.IntRange(1, 100_000)).Draw(rt, "piece"))
			g.receiveAll(rest[:n])
			rest = rest[n:]
		}
		if got, want := g.got.Bytes(), whole.got.Bytes(); !bytes.Equal(got, want) {
			rt.Fatalf("%q\nin pieces: %.300q\nas a whole: %.300q", input, got, want)
		}
		if g.State() != whole.State() {
			rt.Fatalf("in pieces it is %v, as a whole %v", g.State(), whole.State())
		}
		// The end of the input ends every conversation after its last reply.
		for _, g := range []*client{g, whole} {
			if g.State() == Reading || g.State() == Waiting {
				g.EndInput(g.driver.batch)
				if g.driver.batch.Len() > 0 {
					g.driver.turn()
				}
				g.proceed()
			}
			g.wantState(Closed)
		}
	})
}

// receiveAll passes bytes to the conversation, one full buffer at a time.
func (g *client) receiveAll(input []byte) {
	g.pending = append(g.pending, input...)
	g.proceed()
}

func drawInput(t *rapid.T) []byte {
	id := rapid.IntRange(1, 12)
	numbered := func(format string) *rapid.Generator[string] {
		return rapid.Map(id, func(n int) string { return fmt.Sprintf(format, n) })
	}
	command := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string {
			size := rapid.OneOf(rapid.IntRange(0, 20), rapid.SampledFrom([]int{70_000, largeBody, 300_001})).Draw(t, "size")
			return fmt.Sprintf("put %d 0 100 %d\r\n%s\r\n", id.Draw(t, "pri"), size, strings.Repeat("b", size))
		}),
		numbered("delete %d\r\n"), numbered("peek %d\r\n"), numbered("reserve-job %d\r\n"),
		numbered("bury %d 1\r\n"), numbered("release %d 1 0\r\n"), numbered("stats-job %d\r\n"),
		rapid.SampledFrom([]string{
			"reserve-with-timeout 0\r\n", "kick 3\r\n", "list-tubes\r\n", "use a\r\n", "watch a\r\n", "stats-tube a\r\n",
			"list-tubes-watched\r\n", "stats\r\n", "nonsense\r\n", "put 0 0 1 3\r\nlonger\r\n", "quit\r\n", "reserve\r\n",
			strings.Repeat("x", 300) + "\r\n", strings.Repeat("list-tube-used\r\n", 2*maxCommands+3), "Host: a\r\n",
		}),
	)
	input := strings.Join(rapid.SliceOfN(command, 1, 20).Draw(t, "commands"), "")
	return []byte(input[:len(input)-rapid.IntRange(0, min(5, len(input))).Draw(t, "cut off")])
}

// A reserve waits. Its reply follows the earlier replies, and later input is executed
// after it.
func TestWait(t *testing.T) {
	d := newDriver(t)
	worker, producer := d.connect(), d.connect()
	worker.send("use x\nreserve\nuse y\n")
	worker.want("USING x\n")
	worker.wantState(Waiting)
	worker.Receive(d.batch, d.now, []byte("use z\r\n"))
	worker.wantState(Waiting)
	producer.send("put 0 0 9 2\nhi\n")
	producer.want("INSERTED 1\n")
	worker.want("RESERVED 1 2\nhi\nUSING y\nUSING z\n")
	worker.wantState(Reading)

	// The wait ends while earlier replies are being written.
	worker.deaf = true
	worker.send("use x\nreserve\n")
	worker.wantState(Writing)
	producer.send("put 0 0 9 2\nho\n")
	worker.wantState(Writing)
	worker.deaf = false
	worker.proceed()
	worker.want("USING x\nRESERVED 2 2\nho\n")

	// The client hangs up.
	worker.send("reserve\n")
	worker.HangUp(d.batch)
	worker.HangUp(d.batch)
	if d.batch.Len() != 1 {
		t.Errorf("%d tasks, want 1", d.batch.Len())
	}
	d.turn()
	worker.want("TIMED_OUT\n")
	worker.wantState(Reading)
}

// In one batch, one client waits and the other puts the job. The reply to the reserve is
// settled with the batch.
func TestWaitEndsInItsOwnTurn(t *testing.T) {
	d := newDriver(t)
	worker, producer := d.connect(), d.connect()
	worker.Receive(d.batch, d.now, []byte("use x\r\nreserve\r\n"))
	producer.Receive(d.batch, d.now, []byte("put 0 0 9 2\r\nhi\r\n"))
	d.now = d.batch.Apply(d.eng, d.now)
	d.batch.TurnOver()
	worker.wantState(Settling)
	worker.Answered(d.now, nil) // called before the batch is settled
	d.waits = nil
	worker.wantState(Settling)
	d.batch.Settle(nil)
	worker.proceed()
	worker.want("USING x\nRESERVED 1 2\nhi\n")
}

// If a turn's changes are not durable, the replies that depend on the log become errors,
// regardless of the other commands in the batch. Other replies do not change.
func TestSettleFails(t *testing.T) {
	d := newDriver(t)
	c := d.connect()
	c.send("put 0 0 9 1\na\n")
	c.want("INSERTED 1\n")
	d.failing = errDisk
	newcomer := &client{driver: d}
	newcomer.Conversation = New(&d.shared, newcomer, "")
	newcomer.open().Receive(d.batch, d.now, []byte("put 0 0 9 1\r\nb\r\nuse y\r\n"))
	c.send("use x\npeek 1\nreserve\nbury 1 0\nlist-tube-used\ndelete 1\ndelete 1\n")
	c.want("USING x\nFOUND 1 1\na\nRESERVED 1 1\na\nINTERNAL_ERROR\nUSING x\nINTERNAL_ERROR\nNOT_FOUND\n")
	newcomer.want("INTERNAL_ERROR\nUSING y\n")
	c.send("put 0 0 9 1\nc\n")
	c.want("INTERNAL_ERROR\n")
	d.failing = nil
	c.send("put 0 0 9 1\nd\n")
	c.want("INSERTED 4\n")

	// The reply to a duplicate put depends on the put of the existing job.
	key := &engine.Key{Of: func(_ *[]byte, body []byte) ([]byte, bool) { return body, true }}
	d.eng.SetPolicies(engine.PolicyFunc(func(tube string) *engine.Policy { return &engine.Policy{Unique: key} }))
	c.send("put 0 0 9 1\nd\n")
	c.want("INSERTED 4\n")
	d.failing = errDisk
	c.send("put 0 0 9 1\nd\npeek 4\n")
	c.want("INTERNAL_ERROR\nFOUND 4 1\nd\n")
	d.failing = nil
	d.eng.SetPolicies(engine.PolicyFunc(func(tube string) *engine.Policy { return nil }))

	// A reply whose body was not copied is replaced completely.
	body := strings.Repeat("x", largeBody)
	c.send(fmt.Sprintf("put 0 0 9 %d\n%s\n", largeBody, body))
	c.send("reserve-job 5\nbury 5 0\n")
	c.got.Reset()
	d.failing = errDisk
	c.send("use a\nreserve-job 5\nuse b\n")
	c.want("USING a\nINTERNAL_ERROR\nUSING b\n")
}

// A deposed server sends no replies, neither to read-only commands nor to a waiting
// reserve.
func TestDeposed(t *testing.T) {
	d := newDriver(t)
	deposed := fmt.Errorf("raft: %w", broker.ErrDeposed)
	worker, other, producer, quitter, idle := d.connect(), d.connect(), d.connect(), d.connect(), d.connect()
	worker.send("reserve\n")
	other.send("watch x\nreserve\n")
	other.got.Reset()
	d.failing = deposed
	producer.send("put 0 0 9 2\nhi\n")
	quitter.send("peek 1\nquit\n")
	for _, g := range []*client{worker, producer, quitter} {
		g.want("")
		g.wantState(Closed)
		if !errors.Is(g.Reason(), broker.ErrDeposed) {
			t.Errorf("the reason is %v", g.Reason())
		}
	}
	other.wantState(Waiting)
	idle.wantState(Reading)

	// The client hangs up while it waits.
	other.HangUp(d.batch)
	d.turn()
	other.want("")
	other.wantState(Closed)

	// The current turn ends the wait of a closed conversation.
	idle.Receive(d.batch, d.now, []byte("reserve\r\n"))
	d.now = d.batch.Apply(d.eng, d.now)
	d.batch.TurnOver()
	d.batch.Settle(deposed)
	d.batch.Reset()
	idle.wantState(Closed)
	idle.WaitOver(engine.Job{ID: 7}, engine.OK)
	idle.Answered(d.now, deposed)
	d.waits = nil
	idle.want("")
	idle.wantState(Closed)
}

// A kick gets one reply after any number of turns. If one of them is not durable, the
// reply is an error.
func TestKickContinues(t *testing.T) {
	for _, failing := range []error{nil, errDisk} {
		d := newDriver(t)
		const jobs = 2000
		s := d.eng.Open(nil)
		for range jobs {
			id, _ := d.eng.Put(d.now, s, engine.Spec{TTR: 3600}, nil)
			d.eng.ReserveJob(d.now, s, id)
			d.eng.Bury(s, id, 0)
		}
		g := d.connect()
		g.Receive(d.batch, d.now, []byte("kick 10000\r\nuse x\r\n"))
		d.failing = failing
		d.now = d.batch.Apply(d.eng, d.now+1)
		d.batch.TurnOver()
		g.wantState(Settling)
		d.batch.Settle(d.failing)
		d.batch.Reset()
		g.wantState(Ready)
		d.failing = nil
		g.proceed()
		if failing == nil {
			g.want(fmt.Sprintf("KICKED %d\nUSING x\n", jobs))
		} else {
			g.want("INTERNAL_ERROR\nUSING x\n")
		}
	}
}

// A long list is formatted while it is written, and does not change in the meantime.
func TestListContinues(t *testing.T) {
	d := newDriver(t)
	s := d.eng.Open(nil)
	var want strings.Builder
	want.WriteString("---\n- default\n")
	for i := range 20_000 {
		name := fmt.Sprintf("a-tube-with-a-longer-name-%d", i)
		d.eng.Watch(s, []byte(name))
		want.WriteString("- " + name + "\n")
	}
	g := d.connect()
	g.deaf = true
	g.send("list-tubes\nuse x\n")
	if _, out := g.Memory(); out > 2*listPiece {
		t.Errorf("%d bytes are formatted at a time", out)
	}
	d.eng.Close(d.now, s)
	g.deaf = false
	g.proceed()
	got, _ := g.got.ReadBytes('\r')
	if string(got) != fmt.Sprintf("OK %d\r", want.Len()) {
		t.Fatalf("starts with %q", got)
	}
	if got := g.got.String(); got != "\n"+want.String()+"\r\nUSING x\r\n" {
		t.Errorf("%d bytes of a list are wrong", len(got))
	}
}

// A large body is not copied for each reader, and outlives its job.
func TestLargeBodyIsShared(t *testing.T) {
	d := newDriver(t)
	const size = 200_000
	body := strings.Repeat("x", size)
	producer := d.connect()
	producer.send(fmt.Sprintf("put 0 0 9 %d\n%s\n", size, body))
	var readers [10]*client
	for i := range readers {
		readers[i] = d.connect()
		readers[i].deaf = true
		readers[i].send("peek 1\npeek 1\nuse x\n")
		if _, out := readers[i].Memory(); out > 4<<10 {
			t.Errorf("a reader has %d bytes", out)
		}
	}
	waiting := d.connect()
	waiting.send("watch y\nignore default\nreserve\n")
	producer.send(fmt.Sprintf("delete 1\nuse y\nput 0 0 9 %d\n%s\n", size, body))
	waiting.want(fmt.Sprintf("WATCHING 2\nWATCHING 1\nRESERVED 2 %d\n%s\n", size, body))
	for _, g := range readers {
		g.deaf = false
		g.proceed()
		g.want(fmt.Sprintf("FOUND 1 %d\n%s\nNOT_FOUND\nUSING x\n", size, body))
	}
}

// Input of single bytes does not extend the deadline, but real progress does.
func TestDeadline(t *testing.T) {
	const limit = int64(time.Minute)
	d := newDriver(t)
	g := d.connect()
	deadline := func() int64 {
		at, _ := g.deadline()
		return at
	}
	wantReason := func(want error) {
		t.Helper()
		if _, got := g.deadline(); got != want {
			t.Errorf("reason %v, want %v", got, want)
		}
	}
	if deadline() != engine.Never {
		t.Errorf("idle until %d", deadline())
	}
	d.shared.IdleTimeout = time.Hour
	wantReason(ErrIdle)
	d.now += limit
	g.send("put 0 0 9 10000\n")
	begun := d.now
	for range 100 {
		d.now += limit / 50
		g.send("x")
	}
	if deadline() > begun+limit {
		t.Errorf("dripping moves the deadline by %v", time.Duration(deadline()-begun-limit))
	}
	wantReason(ErrStalled)
	g.send(strings.Repeat("x", 5000))
	if deadline() != d.now+limit {
		t.Errorf("5000 more bytes extend the deadline to %v", time.Duration(deadline()-d.now))
	}
	g.send(strings.Repeat("x", 10000-5100) + "\n")
	g.want("INSERTED 1\n")
	wantReason(ErrIdle)

	// The same is true for replies of which the kernel buffers a part.
	g.deaf = true
	g.send("peek 1\n")
	wantReason(ErrUnread)
	written := d.now
	acknowledged := func(n int) {
		g.unacked = n
		g.askUnacknowledged(d.now)
	}
	acknowledged(100_000) // includes earlier replies
	for n := 99_999; n > 98_000; n-- {
		d.now += limit / 1000
		acknowledged(n)
	}
	if deadline() > written+limit {
		t.Errorf("acknowledging a byte at a time moves the deadline by %v", time.Duration(deadline()-written-limit))
	}
	acknowledged(90_000)
	if deadline() != d.now+limit {
		t.Errorf("8000 acknowledged bytes extend the deadline to %v", time.Duration(deadline()-d.now))
	}
	d.shared.StallTimeout = -1
	if deadline() != engine.Never {
		t.Error("a disabled stall timeout has a deadline")
	}
	g.deaf = false
	g.proceed()
	g.send("reserve-with-timeout 0\nreserve\n")
	g.wantState(Waiting)
	if deadline() != engine.Never {
		t.Error("a waiting client has a deadline")
	}
}

// A conversation can be ended in every state.
func TestEnd(t *testing.T) {
	for _, input := range []string{"", "use x", "put 0 0 9 5\nhe", "reserve\n", "use x\n", "quit\n", "kick 1\nreserve\nuse x\n", "put 0 0 9 1\nx\n"} {
		d := newDriver(t)
		g := d.connect()
		g.deaf = true
		g.send(input)
		g.end()
		g.End(d.batch, errDisk)
		if d.batch.Len() != 0 {
			t.Error("it ended twice")
		}

		// End also works while the commands are in the same batch, and while a turn is
		// unsettled.
		g = d.connect()
		crlf := strings.ReplaceAll(input, "\n", "\r\n")
		g.Receive(d.batch, d.now, []byte(crlf+"use y\r\nput 0 0 9 1\r\nx\r\nreserve\r\nreserve\r\n"))
		d.now = d.batch.Apply(d.eng, d.now)
		d.batch.TurnOver()
		later := NewBatch(0)
		g.End(later, errDisk)
		d.now = later.Apply(d.eng, d.now)
		later.TurnOver()
		d.batch.Settle(errDisk)
		d.batch.Reset()
		for _, g := range d.waits {
			g.Answered(d.now, d.failing)
		}
		d.waits = nil
		g.wantState(Closed)
	}
}

// At the end of the input, all complete commands are executed.
func TestEndOfInput(t *testing.T) {
	d := newDriver(t)
	g := d.connect()
	g.send("use a\nuse b\nuse")
	g.EndInput(d.batch)
	g.proceed()
	g.want("USING a\nUSING b\n")
	g.wantState(Closed)
	if g.Reason() != io.EOF {
		t.Errorf("reason %v", g.Reason())
	}
	g = d.connect()
	g.send("reserve\nuse a\nreserve\nuse b\nuse")
	g.EndInput(d.batch)
	d.turn()
	g.want("TIMED_OUT\nUSING a\nTIMED_OUT\nUSING b\n")
	g.wantState(Closed)
}

// A silent client is disconnected after the idle timeout, unless it holds jobs. Such a
// client works on its jobs, and other workers would repeat the work.
func TestIdle(t *testing.T) {
	d := newDriver(t)
	d.shared.IdleTimeout = time.Minute
	idle, works, late := d.connect(), d.connect(), d.connect()
	idle.send("put 0 0 3600 1\nx\nput 0 0 90 1\ny\n")
	works.send("reserve-job 1\n")
	late.send("reserve-job 2\n")
	for minute, want := range [][]State{{Closed, Reading, Reading}, {Closed, Reading, Closed}, {Closed, Reading, Closed}} {
		d.now += int64(time.Minute)
		for i, g := range []*client{idle, works, late} {
			if g.State() == Reading {
				g.resume()
			}
			if g.State() != want[i] {
				t.Errorf("after minute %d client %d is %v, want %v", minute+1, i, g.State(), want[i])
			}
		}
	}
	if idle.Reason() != ErrIdle || late.Reason() != ErrIdle {
		t.Errorf("reasons %v and %v", idle.Reason(), late.Reason())
	}
	works.send("delete 1\n")
	works.want("RESERVED 1 1\nx\nDELETED\n")
	works.resume()
	works.wantState(Closed)
	if n := d.eng.Stats().Sessions; n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

// Clients that send many slow commands share a turn. Each executes at least one command,
// and together they do at most a turn's work. In the next turn, each can execute only as
// many slow commands as fit in its time. After other commands, it can execute many again.
func TestCommandsThatTakeLongShareTheTurn(t *testing.T) {
	const clients, work = 20, 8192 / statsWork
	d := newDriver(t)
	var all [clients]*client
	for i := range all {
		all[i] = d.connect()
	}
	for _, g := range all {
		g.Receive(d.batch, d.now, []byte(strings.Repeat("stats\r\n", maxCommands)))
	}
	turn := func() (executed int) {
		d.eng.Tick(d.now)
		d.now = d.batch.Apply(d.eng, d.now)
		for i := range d.batch.tasks {
			n := d.batch.tasks[i].executed
			if executed += n; n == 0 {
				t.Error("a client got no time")
			}
		}
		d.batch.TurnOver()
		d.batch.Settle(nil)
		d.batch.Reset()
		for _, g := range all {
			for g.State() == Writing {
				g.write()
			}
			g.Advance(d.batch, d.now)
		}
		return executed
	}
	if n := turn(); n > work+clients {
		t.Errorf("a turn executed %d commands, want at most %d", n, work+clients)
	}
	if n := d.batch.Commands(); n > 2*work+clients {
		t.Errorf("%d commands were parsed for the next turn, of which %d have time", n, work)
	}
	for d.batch.Len() > 0 {
		turn()
	}
	for _, g := range all {
		if n := strings.Count(g.got.String(), "OK "); n != maxCommands {
			t.Fatalf("%d replies", n)
		}
	}
	for range 8 { // until its share has doubled often enough
		all[0].send(strings.Repeat("list-tube-used\n", maxCommands))
	}
	all[0].Receive(d.batch, d.now, []byte(strings.Repeat("list-tube-used\r\n", maxCommands)))
	if n := d.batch.Commands(); n != maxCommands {
		t.Errorf("%d commands were parsed for a turn with time for all, want %d", n, maxCommands)
	}
	d.turn()
}
