package load

import (
	"slices"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A table is a session and a responder that exchange bytes under the test's control.
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

// round sends the session's output and delivers the replies in pieces of at most n bytes.
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

func TestSessionAcceptsAnyPieces(t *testing.T) {
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

// A reply that does not belong to its command or its job is an error.
func TestSurprises(t *testing.T) {
	inserted, wrong := wire.AppendNumber(nil, wire.Inserted, 1), newBody(64)
	wrong[33]++
	for want, replies := range map[string][][]byte{
		"unexpected reply to put: \"OUT_OF_MEMORY\"": {wire.AppendWord(nil, wire.OutOfMemory)},
		"unexpected reply to put":                    {wire.AppendWord(nil, wire.Deleted)},
		"job 7 has a body of 14 bytes that is not":   {inserted, wire.AppendJob(nil, wire.Reserved, 7, []byte("something else"))},
		"job 8 has a body of 64 bytes that is not":   {inserted, wire.AppendJob(nil, wire.Reserved, 8, wrong)},
		"unexpected reply to delete":                 {inserted, wire.AppendJob(nil, wire.Reserved, 1, newBody(64)), wire.AppendWord(nil, wire.NotFound)},
		"a reply to no command":                      {slices.Concat(inserted, inserted)},
		"not a reply: \"What?\"":                     {[]byte("What?\r\n")},
	} {
		s := newTable(Options{}).s
		var err error
		for _, reply := range replies {
			s.fill(1, measuring)
			s.in.add(copy(s.in.space(), reply))
			if err = s.replies(2, measuring); err != nil {
				break
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
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
