package load

import (
	"slices"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A table is a session and a responder that pass bytes to each other by hand.
type table struct {
	s *session
	r *responder
	c *responderConn
}

func newTable(o Options) *table {
	o, err := o.withDefaults()
	if err != nil {
		panic(err)
	}
	r := newResponder()
	s := newSessions(&o)[0]
	s.run = newRun(o)
	return &table{s: s, r: r, c: r.newConn()}
}

// round sends what the session has to say and delivers the answers in pieces
// of at most n bytes.
func (t *table) round(now int64, ph phase, n int) error {
	t.s.fill(now, ph)
	for chunk := range slices.Chunk(t.s.out, n) {
		t.c.in.add(copy(t.c.in.space(), chunk))
		t.c.received()
	}
	t.s.out = t.s.out[:0]
	for chunk := range slices.Chunk(t.c.out, n) {
		t.s.in.add(copy(t.s.in.space(), chunk))
		if err := t.s.replies(now+7, ph); err != nil {
			return err
		}
	}
	t.c.out = t.c.out[:0]
	return nil
}

func TestSessionTakesBytesInAnyPieces(t *testing.T) {
	for _, n := range []int{1, 2, 3, 17, 1000} {
		tb := newTable(Options{InFlight: 5, Ops: 50, BodySize: 10_000})
		rounds := 0
		for ; !tb.s.done() || rounds == 0; rounds++ {
			if err := tb.round(int64(rounds), measuring, n); err != nil {
				t.Fatalf("pieces of %d: %v", n, err)
			}
			tb.s.fill(int64(rounds), measuring)
		}
		tally := &tb.s.run.tally
		if l := tally.latencies.Latency(); tally.commands != 150 || l.Count != 150 {
			t.Errorf("pieces of %d: %d commands and %d latencies, want 150", n, tally.commands, l.Count)
		}
	}
}

// What a session has begun it finishes when it is told to stop, and nothing of
// that is counted.
func TestSessionStops(t *testing.T) {
	tb := newTable(Options{InFlight: 8})
	for i := range 10 {
		if err := tb.round(int64(i), measuring, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	counted := tb.s.run.tally.commands
	for i := 0; ; i++ {
		if err := tb.round(int64(i), stopping, 1<<20); err != nil {
			t.Fatal(err)
		}
		tb.s.fill(0, stopping)
		if tb.s.done() {
			break
		}
		if i > 10 {
			t.Fatal("does not stop")
		}
	}
	if tube := tb.r.tubes[defaultTube]; tube.puts == 0 || tube.puts != tube.reserves {
		t.Errorf("%d puts and %d reserves", tube.puts, tube.reserves)
	}
	if tb.s.run.tally.commands != counted {
		t.Errorf("counted %d replies while stopping", tb.s.run.tally.commands-counted)
	}
}

// The invariant of which the package comment says that it keeps the loop from hanging.
func TestReservesNeverOutnumberPuts(t *testing.T) {
	for _, window := range []int{1, 2, 3, 64} {
		c := &cycle{mix: PutReserveDelete, quota: unlimited}
		var flights []wire.Op
		puts, reserves := 0, 0
		for id := range uint64(1000) {
			for len(flights) < window {
				op, _ := c.next(0, measuring)
				switch op {
				case wire.Put:
					puts++
				case wire.Reserve:
					reserves++
				}
				if reserves > puts {
					t.Fatalf("window %d: reserve %d after %d puts", window, reserves, puts)
				}
				flights = append(flights, op)
			}
			reply := wire.Reply{ID: id, Kind: map[wire.Op]wire.ReplyKind{
				wire.Put: wire.Inserted, wire.Reserve: wire.Reserved, wire.Delete: wire.Deleted,
			}[flights[0]]}
			if v, _ := c.answered(flight{op: flights[0]}, &reply); v != timed {
				t.Fatalf("window %d: %v got verdict %d", window, flights[0], v)
			}
			flights = flights[1:]
		}
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, window := range []int{1, 64} {
		tb := newTable(Options{InFlight: window})
		now := int64(0)
		round := func() {
			now += 1000
			if err := tb.round(now, measuring, 1<<20); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 {
			round()
		}
		if n := testing.AllocsPerRun(100, round); n != 0 {
			t.Errorf("window %d: %v allocations a round", window, n)
		}
	}
}

func TestQuota(t *testing.T) {
	for _, tt := range []struct {
		ops  int64
		want []int64
	}{{10, []int64{4, 3, 3}}, {2, []int64{1, 1, 0}}, {9, []int64{3, 3, 3}}, {0, []int64{unlimited, unlimited}}} {
		o := Options{Ops: tt.ops, Connections: len(tt.want)}
		var got []int64
		for i := range tt.want {
			got = append(got, o.quota(i))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("shares of %d: %v, want %v", tt.ops, got, tt.want)
		}
	}
}
