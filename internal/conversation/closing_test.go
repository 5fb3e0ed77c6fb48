package conversation

import (
	"io"
	"testing"
	"time"
)

// A quit ends the session in the turn that executes it, even if earlier replies are not
// yet written. In the same batch, another client can reserve the released job.
func TestQuitEndsInItsTurn(t *testing.T) {
	d := newDriver(t)
	b, a := d.connect(), d.connect()
	b.send("put 0 0 9 1\nx\nreserve\n")
	b.got.Reset()
	b.deaf = true
	b.Receive(d.batch, d.now, []byte("use x\r\nquit\r\n"))
	a.Receive(d.batch, d.now, []byte("reserve-with-timeout 0\r\n"))
	d.turn()
	a.want("RESERVED 1 1\nx\n")
	b.wantState(Writing)
	if n := d.eng.Stats().Sessions; n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
	b.deaf = false
	b.proceed()
	b.want("USING x\n")
	b.wantState(Closed)

	// The client can close the connection while it writes its last replies.
	b = d.connect()
	b.deaf = true
	b.send("use x\nquit\n")
	b.wantState(Writing)
	b.End(d.batch, errDisk)
	b.wantState(Closed)
	if d.batch.Len() != 0 || b.Reason() != errDisk {
		t.Errorf("%d tasks, reason %v", d.batch.Len(), b.Reason())
	}
}

// A client that might not have all its replies gets time to read them. Its input during
// that time is discarded.
func TestLinger(t *testing.T) {
	linger := func(unacked, unread int) (*driver, *client) {
		d := newDriver(t)
		g := d.connect()
		g.Receive(d.batch, d.now, []byte("quit\r\n"))
		d.now = d.batch.Apply(d.eng, d.now)
		d.batch.TurnOver()
		d.batch.Settle(nil)
		d.batch.Reset()
		g.unacked = unacked
		g.wantState(Lingering)
		if half := g.Drained(d.now, unread, nil); half != (unacked+unread > 0) {
			t.Errorf("%d bytes unacknowledged, %d unread: half-close: %v", unacked, unread, half)
		}
		return d, g
	}
	_, g := linger(0, 0)
	g.wantState(Closed)

	d, g := linger(0, 10)
	g.Drained(d.now, 100, nil)
	g.wantState(Lingering)
	g.Drained(d.now, 0, io.EOF)
	g.wantState(Closed)

	d, g = linger(10, 0)
	began := d.now
	for range lingerTime / lingerCheck {
		if at := g.Next(); at != d.now+int64(lingerCheck) {
			t.Errorf("it wants to be looked at in %v", time.Duration(at-d.now))
		}
		g.Advance(d.batch, g.Next()-1)
		g.wantState(Lingering)
		d.now = g.Next()
		if d.now < began+int64(lingerTime) {
			g.Drained(d.now, 0, nil)
		}
	}
	g.Advance(d.batch, d.now)
	g.wantState(Closed)

	_, g = linger(10, 0) // acknowledges late, and never closes the connection
	g.unacked = 0
	g.Drained(g.Next(), 10, nil)
	g.wantState(Lingering)
	g.Drained(g.Next(), 0, nil)
	g.wantState(Closed)
}

// Stop lets a client get the replies to its earlier commands, and does not wait for other
// events.
func TestStop(t *testing.T) {
	for name, c := range map[string]struct{ input, want string }{
		"idle":    {"", ""},
		"half":    {"use x\nuse", "USING x\n"},
		"waiting": {"use x\nreserve\nuse y\n", "USING x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t)
			g := d.connect()
			g.send(c.input)
			g.Stop(d.batch)
			g.wantState(Leaving)
			d.turn()
			g.want(c.want)
			g.wantState(Closed)

			// Stop also works before the commands are executed, or before their replies are
			// written.
			g = d.connect()
			g.deaf = true
			g.send(c.input)
			g.Stop(d.batch)
			g.deaf = false
			if d.batch.Len() > 0 {
				d.turn()
			}
			g.proceed()
			g.want(c.want)
			g.wantState(Closed)
			if g.Reason() != ErrStopped {
				t.Errorf("reason %v", g.Reason())
			}
		})
	}
}

// If a connection starts with another protocol, the conversation ends before it executes
// a command.
func TestForeign(t *testing.T) {
	for input, want := range map[string]error{
		"\x16\x03\x01\x02\x00\nput 0 0 9 1\nx\n":                      ErrTLS,
		"PROXY TCP4 192.0.2.7 10.0.0.1 40000 11300\nput 0 0 9 1\nx\n": ErrProxy,
		"\x00\x01\x00\x00\nput 0 0 9 1\nx\n":                          ErrForeign,
		"\x80\x2e\x01\nput 0 0 9 1\nx\n":                              ErrForeign,
		"\nuse x\nquit\n":                                             ErrQuit,
		"GET / HTTP/1.1\nput 0 0 9 1\nx\n":                            ErrHTTP,
		"PUT /x HTTP/1.1\nput 0 0 9 1\nx\n":                           ErrHTTP,
	} {
		d := newDriver(t)
		g := d.connect()
		g.send(input)
		g.wantState(Closed)
		if g.Reason() != want {
			t.Errorf("%q: reason %v, want %v", input, g.Reason(), want)
		}
		if st := d.eng.Stats(); st.TotalJobs != 0 || st.Sessions != 0 {
			t.Errorf("%q: %d jobs, %d sessions", input, st.TotalJobs, st.Sessions)
		}
	}
	d := newDriver(t)
	g := d.connect()
	g.pending = []byte("\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00")
	if g.proceed(); g.Reason() != ErrProxy {
		t.Errorf("reason %v, want %v", g.Reason(), ErrProxy)
	}
	g = d.connect()
	g.send("use x\n\x16\n") // only the first byte counts
	g.want("USING x\nUNKNOWN_COMMAND\n")
}
