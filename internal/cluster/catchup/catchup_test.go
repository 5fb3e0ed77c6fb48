package catchup

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// entries is the log of a leader whose entries commit at once. It is the broker's Log, and a
// follower's, too.
type entries struct{ all [][]engine.Change }

func (l *entries) Append(changes []engine.Change) error {
	for i := range changes {
		changes[i].Body = bytes.Clone(changes[i].Body)
	}
	l.all = append(l.all, slices.Clone(changes))
	return nil
}
func (l *entries) Flush() (bool, error)           { return true, nil }
func (l *entries) Sync() error                    { return nil }
func (l *entries) Housekeep(int64) int64          { return engine.Never }
func (l *entries) Close() error                   { return nil }
func (l *entries) mark() Mark                     { return Mark{Index: uint64(len(l.all)), Term: 7, Stamp: 8} }
func (l *entries) since(m Mark) [][]engine.Change { return l.all[m.Index:] }

// A queue is an engine with its broker, that decides or is told.
type queue struct {
	log    entries
	broker *broker.Broker
	now    int64
}

func newQueue() *queue {
	q := new(queue)
	q.broker = broker.New(engine.New(engine.Options{Logged: true}), broker.Options{Log: &q.log, Now: func() int64 { return q.now }})
	return q
}

func (q *queue) donor() *Donor {
	return &Donor{
		Turn:    func(f func(*engine.Engine)) { q.broker.Look(func(e *engine.Engine, _ int64) { f(e) }) },
		Applied: q.log.mark,
		Settled: func(context.Context) (m Mark, err error) {
			err = q.broker.Call(func(*engine.Engine, int64) { m = q.log.mark() })
			return m, err
		},
	}
}

// work does something random.
func (q *queue) work(r *rand.Rand) {
	q.broker.Call(func(e *engine.Engine, now int64) {
		q.now++
		id, tube := 1+r.Uint64N(e.LastID()+1), fmt.Appendf(nil, "t%d", r.IntN(300))
		switch r.IntN(8) {
		case 0, 1, 2:
			e.PutInto(now, tube, engine.Spec{Pri: uint32(r.IntN(9)), Delay: uint32(r.IntN(2) * 1000), TTR: 1}, bytes.Repeat([]byte("x"), 1<<r.IntN(14)))
		case 3, 4:
			e.DeleteJob(id)
		case 5:
			e.BuryJob(id, 5)
		case 6:
			e.KickJob(now, id)
		case 7:
			e.Pause(now, tube, uint32(r.IntN(2)*1000))
		}
	})
}

func restore(e *engine.Engine) func([]engine.Change) error {
	return func(changes []engine.Change) error {
		for _, c := range changes {
			e.Restore(c)
		}
		return nil
	}
}

// A member that has received a walk, over a connection, beside which the donor's work went
// on, and then all that was decided since the walk began, has what the donor has.
func TestBesideWork(t *testing.T) {
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, seed))
		q := newQueue()
		for range 6000 {
			q.work(r)
		}
		before := len(q.log.all)
		d := q.donor()
		d.Pause = func() {
			for range 50 {
				q.work(r)
			}
		}
		from, to := net.Pipe()
		sent := make(chan Sent)
		go func() {
			s, err := Send(t.Context(), from, d)
			if err != nil {
				t.Error(err)
			}
			from.Close()
			sent <- s
		}()
		const epoch = 1 << 40 // the receiver's clock is another one
		e := engine.New(engine.Options{})
		got, err := Receive(to, epoch, restore(e))
		if err != nil {
			t.Fatal(err)
		}
		if s := <-sent; s.From != got.From || s.Until != got.Until || s.Jobs != got.Jobs || got.Jobs == 0 {
			t.Errorf("sent %+v, received %+v", s, got)
		}
		if got.From.Index != uint64(before) || got.Until.Index <= got.From.Index {
			t.Errorf("the walk is from %+v until %+v, want from %d and until later", got.From, got.Until, before)
		}
		for _, changes := range q.log.since(got.From) {
			for _, c := range changes {
				if c.Created -= epoch; c.State == engine.Delayed || c.Kind == engine.TubePaused {
					c.Due -= epoch
				}
				e.Restore(c)
			}
		}
		if err := e.Check(); err != nil {
			t.Fatal(err)
		}
		q.broker.Look(func(want *engine.Engine, now int64) {
			if g, w := e.Digest(now-epoch, epoch), want.Digest(now, 0); g != w {
				t.Errorf("seed %d: the receiver has the digest %x, the donor %x", seed, g, w)
			}
			if e.LastID() != want.LastID() {
				t.Errorf("the receiver's last id is %d, the donor's %d", e.LastID(), want.LastID())
			}
		})
	}
}

// Neither side holds more than a slice, however much there is.
func TestSlices(t *testing.T) {
	q := newQueue()
	for range 20 {
		q.broker.Call(func(e *engine.Engine, now int64) {
			for range 100 {
				e.PutInto(now, []byte("a"), engine.Spec{TTR: 1}, make([]byte, 16<<10))
			}
		})
	}
	q.broker.Call(func(e *engine.Engine, now int64) {
		e.PutInto(now, []byte("a"), engine.Spec{TTR: 1}, make([]byte, 9<<20))
	})
	largest := 0
	d, turn, turns, visits := q.donor(), 0, 0, new(countingWriter)
	d.Pause = func() { turns++ }
	run := d.Turn
	d.Turn = func(f func(*engine.Engine)) { turn++; run(f) }
	var stream bytes.Buffer
	if _, err := Send(t.Context(), io.MultiWriter(&stream, visits), d); err != nil {
		t.Fatal(err)
	}
	if turn < 30 || turns != turn-1 {
		t.Errorf("%d turns with %d pauses between them", turn, turns)
	}
	if visits.largest > 9<<20+2*sliceBytes {
		t.Errorf("%d bytes were written at once", visits.largest)
	}
	e := engine.New(engine.Options{})
	got, err := Receive(&stream, 0, func(changes []engine.Change) error {
		size := 0
		for _, c := range changes {
			if size += len(c.Body); len(c.Body) < sliceBytes {
				largest = max(largest, size)
			}
		}
		return restore(e)(changes)
	})
	if err != nil || got.Jobs != 2001 {
		t.Fatalf("%+v, %v", got, err)
	}
	if largest > 2*sliceBytes {
		t.Errorf("%d bytes were taken at once", largest)
	}
}

type countingWriter struct{ largest int }

func (w *countingWriter) Write(p []byte) (int, error) {
	w.largest = max(w.largest, len(p))
	return len(p), nil
}

// A walk over a leader does not count if the leader loses its epoch before all of it is
// committed.
func TestDonorDeposed(t *testing.T) {
	q := newQueue()
	q.work(rand.New(rand.NewPCG(1, 1)))
	d := q.donor()
	d.Settled = func(context.Context) (Mark, error) { return Mark{}, broker.ErrDeposed }
	var stream bytes.Buffer
	if _, err := Send(t.Context(), &stream, d); !errors.Is(err, broker.ErrDeposed) {
		t.Errorf("sent, %v", err)
	}
	if _, err := Receive(&stream, 0, restore(engine.New(engine.Options{}))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("received, %v", err)
	}
}

// Nor if the engine is another one in the middle of it, or if there is no turn.
func TestDonorReplaced(t *testing.T) {
	q := newQueue()
	for r := rand.New(rand.NewPCG(1, 1)); len(q.log.all) < 3000; {
		q.work(r)
	}
	d := q.donor()
	d.Pause = func() { q.broker.Replace(func(*engine.Engine) *engine.Engine { return engine.New(engine.Options{}) }) }
	if _, err := Send(t.Context(), io.Discard, d); !errors.Is(err, errReplaced) {
		t.Errorf("with another engine: %v", err)
	}
	d = q.donor()
	d.Turn = func(func(*engine.Engine)) {}
	if _, err := Send(t.Context(), io.Discard, d); !errors.Is(err, errReplaced) {
		t.Errorf("without turns: %v", err)
	}
}

func TestSendEnds(t *testing.T) {
	q := newQueue()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Send(ctx, io.Discard, q.donor()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	from, to := net.Pipe()
	to.Close()
	if _, err := Send(t.Context(), from, q.donor()); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the receiver has gone: %v", err)
	}
}

// A stream that is cut anywhere is an error, and one that says what it cannot is, too.
func TestReceiveInvalid(t *testing.T) {
	q := newQueue()
	for r := rand.New(rand.NewPCG(1, 1)); len(q.log.all) < 20; {
		q.work(r)
	}
	var stream bytes.Buffer
	if _, err := Send(t.Context(), &stream, q.donor()); err != nil {
		t.Fatal(err)
	}
	whole := stream.Bytes()
	receive := func(b []byte) error {
		_, err := Receive(bytes.NewReader(b), 0, restore(engine.New(engine.Options{})))
		return err
	}
	if err := receive(whole); err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		if err := receive(whole[:n]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut after %d of %d bytes: %v", n, len(whole), err)
		}
	}
	head := len(magic) + markSize
	for name, b := range map[string][]byte{
		"other":                append([]byte("bpwalk2\n"), whole[len(magic):]...),
		"long":                 binary.AppendUvarint(slices.Clone(whole[:head]), 1<<40),
		"kind 2":               append(slices.Clone(whole[:head]), 2, 2, 5),
		"a deletion":           append(slices.Clone(whole[:head]), 2, 3, 5),
		"more jobs":            append(slices.Clone(whole[:len(whole)-1]), whole[len(whole)-1]+1),
		"ends before it began": append(slices.Clone(whole[:head]), make([]byte, 1+markSize+1)...),
	} {
		if err := receive(b); err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
	failed := errors.New("the disk is full")
	_, err := Receive(bytes.NewReader(whole), 0, func([]engine.Change) error { return failed })
	if !errors.Is(err, failed) || !strings.HasPrefix(err.Error(), "catchup: receive: ") {
		t.Errorf("a target that fails: %v", err)
	}
}

func FuzzReceive(f *testing.F) {
	q := newQueue()
	for r := rand.New(rand.NewPCG(1, 1)); len(q.log.all) < 10; {
		q.work(r)
	}
	var stream bytes.Buffer
	Send(f.Context(), &stream, q.donor())
	f.Add(stream.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		Receive(bytes.NewReader(b), 0, func([]engine.Change) error { return nil })
	})
}
