package broker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A raftLog is a Log that behaves like a Raft group. Changes proposed in an epoch are
// committed in order, or dropped when the epoch ends.
type raftLog struct {
	rng *rand.Rand // used by Sync and depose, with mu held

	mu        sync.Mutex
	epoch     int // incremented by each elect
	active    bool
	proposed  []engine.Change // not yet committed, in this epoch
	appended  []engine.Change // not yet proposed
	committed []engine.Change
}

func (l *raftLog) Append(changes []engine.Change) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.active {
		return fmt.Errorf("raft: %w", ErrDeposed)
	}
	for _, c := range changes {
		c.Body, c.Failure = slices.Clone(c.Body), slices.Clone(c.Failure)
		l.appended = append(l.appended, c)
	}
	return nil
}

func (l *raftLog) Flush() (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.active {
		return false, fmt.Errorf("raft: %w", ErrDeposed)
	}
	l.proposed = append(l.proposed, l.appended...)
	l.appended = nil
	return false, nil // read-only turns also wait
}

func (l *raftLog) Sync() error {
	l.mu.Lock()
	epoch, n := l.epoch, len(l.proposed)
	l.mu.Unlock()
	time.Sleep(time.Millisecond) // in the test's fake time: a round trip
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.active || l.epoch != epoch {
		return fmt.Errorf("raft: %w", ErrDeposed)
	}
	l.commit(n)
	return nil
}

// commit commits the first n proposed changes.
func (l *raftLog) commit(n int) {
	l.committed = append(l.committed, l.proposed[:n]...)
	l.proposed = l.proposed[n:]
}

func (l *raftLog) Housekeep(int64) int64 { return engine.Never }

func (l *raftLog) Close() error { return nil }

// depose ends the epoch. Some proposed changes are committed nevertheless: other members
// have them, and the next leader continues from there.
func (l *raftLog) depose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active {
		l.commit(l.rng.IntN(len(l.proposed) + 1))
	}
	l.active, l.proposed, l.appended = false, nil, nil
}

// elect starts an epoch and returns an engine with the committed changes.
func (l *raftLog) elect(*engine.Engine) *engine.Engine {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch++
	l.active = true
	e := engine.New(engine.Options{Logged: true})
	for _, c := range l.committed {
		e.Restore(c)
	}
	return e
}

// A deposed server drops uncommitted changes and executes nothing until it gets another
// engine. So all acknowledged changes exist, no uncommitted change is visible, and engine
// and log agree.
func TestDeposed(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) { deposedLife(t, seed) })
	}
}

func deposedLife(t *testing.T, seed uint64) {
	log := &raftLog{rng: rand.New(rand.NewPCG(seed, 0))}
	b := New(log.elect(nil), Options{Log: log})
	var mu sync.Mutex
	acknowledged, seen := make(map[uint64]string), make(map[uint64]string) // bodies, because the ids of lost jobs are used again
	refused := 0
	var clients sync.WaitGroup
	for k := range 3 {
		rng := rand.New(rand.NewPCG(seed, uint64(k+1)))
		clients.Go(func() {
			for i := range 30 {
				var id uint64
				var saw uint64
				var sawBody string
				applied, body := false, fmt.Sprintf("job %d of client %d", i, k)
				err := b.Call(func(e *engine.Engine, now int64) {
					applied = true
					if c, _, ok := e.NextSnapshot(0); ok {
						saw, sawBody = c.ID, string(c.Body)
					}
					id, _ = e.PutInto(now, []byte("mail"), engine.Spec{TTR: 60, Delay: uint32(rng.IntN(2))}, []byte(body))
				})
				mu.Lock()
				switch {
				case err == nil:
					acknowledged[id] = body
					if saw != 0 {
						seen[saw] = sawBody
					}
				case !errors.Is(err, ErrDeposed):
					t.Errorf("seed %d: %v", seed, err)
				case !applied:
					refused++
				}
				mu.Unlock()
				time.Sleep(time.Duration(rng.IntN(3000)) * time.Microsecond) // in the test's fake time
			}
		})
	}
	for range 5 {
		time.Sleep(time.Duration(1+log.rng.IntN(10)) * time.Millisecond)
		log.depose()
		time.Sleep(time.Duration(log.rng.IntN(10)) * time.Millisecond)
		b.Replace(log.elect)
	}
	clients.Wait()
	if err := b.Call(func(e *engine.Engine, _ int64) {
		for what, jobs := range map[string]map[uint64]string{"acknowledged": acknowledged, "seen": seen} {
			for id, body := range jobs {
				if c, ok := e.Snapshot(id); !ok || string(c.Body) != body {
					t.Errorf("seed %d: %s was %s as %d, which is %q", seed, body, what, id, c.Body)
				}
			}
		}
		log.mu.Lock() // a sync of an earlier turn can end now
		defer log.mu.Unlock()
		committed := make(map[uint64]bool)
		for _, c := range log.committed {
			if c.Kind == engine.JobPut {
				committed[c.ID] = true
			}
		}
		for c := range e.Snapshots {
			if !committed[c.ID] {
				t.Errorf("seed %d: job %d exists, but was not committed", seed, c.ID)
			}
			delete(committed, c.ID)
		}
		if len(committed) > 0 {
			t.Errorf("seed %d: %d jobs are committed, and not there", seed, len(committed))
		}
	}); err != nil {
		t.Errorf("seed %d: at the end: %v", seed, err)
	}
	if err := errors.Join(b.Check(), b.Close()); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	if refused == 0 {
		t.Logf("seed %d: no request was refused", seed)
	}
}

// A turn that is not settled when its engine is replaced fails, even if the log is in
// another epoch when the turn's sync ends.
func TestReplaceSettlesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &raftLog{rng: rand.New(rand.NewPCG(1, 2))}
		b := New(log.elect(nil), Options{Log: log})
		put := func() {
			if err := b.Call(putting("a job")); !errors.Is(err, ErrDeposed) {
				t.Errorf("a job of an ended epoch: %v", err)
			}
		}
		go put() // leads a sync
		synctest.Wait()
		go put() // waits for the next sync
		synctest.Wait()
		log.depose()
		b.Replace(log.elect)
		if err := errors.Join(b.Check(), b.Close()); err != nil {
			t.Error(err)
		}
	})
}

// A deposed server executes no commands and fires no timers.
func TestDeposedExecutesNoCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &raftLog{rng: rand.New(rand.NewPCG(1, 2))}
		b := New(log.elect(nil), Options{Log: log})
		put := func(e *engine.Engine, now int64) {
			e.PutInto(now, []byte("mail"), engine.Spec{TTR: 60, Delay: 1}, nil)
		}
		if err := b.Call(put); err != nil {
			t.Fatal(err)
		}
		log.depose()
		if err := b.Call(put); !errors.Is(err, ErrDeposed) {
			t.Errorf("the turn that finds out: %v", err)
		}
		time.Sleep(10 * time.Second) // in the test's fake time; after it the delay has ended
		applied := false
		if err := b.Call(func(*engine.Engine, int64) { applied = true }); !errors.Is(err, ErrDeposed) || applied {
			t.Errorf("a later turn: %v, executed: %v", err, applied)
		}
		b.Replace(log.elect)
		if err := b.Call(func(e *engine.Engine, _ int64) {
			if st := e.Stats(); st.Ready != 1 || st.Delayed != 0 {
				t.Errorf("the new engine has %d ready and %d delayed jobs", st.Ready, st.Delayed)
			}
		}); err != nil {
			t.Error(err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}

// While the engine follows another server's engine, View sees its current state, clients
// are refused, and nothing comes due.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &raftLog{rng: rand.New(rand.NewPCG(1, 2)), active: true}
		eng := engine.New(engine.Options{Logged: true})
		eng.Restore(engine.Change{Kind: engine.JobPut, ID: 7, TTR: 1, Tube: "mail", State: engine.Delayed, Due: int64(time.Second)})
		decides := false // whether the engine can make changes
		b := New(eng, Options{Log: log, Decides: func() bool { return decides }})
		ready := func() (n int64) {
			b.View(func(e *engine.Engine, _ int64) { n = int64(e.Stats().Ready) })
			return n
		}
		time.Sleep(10 * time.Second) // in the test's fake time; after it the delay has ended
		if n := ready(); n != 0 {
			t.Errorf("%d jobs are ready in an engine that follows", n)
		}
		applied := false
		client := b.NewCaller(request(func(*engine.Engine, int64) { applied = true }))
		if err := client.Do(); !errors.Is(err, ErrDeposed) || applied {
			t.Errorf("a client: %v, and it was executed: %v", err, applied)
		}
		b.callInternal(func() { decides = true })
		if n := ready(); n != 1 {
			t.Errorf("%d jobs are ready in an engine that decides", n)
		}
		if err := client.Do(); err != nil || !applied {
			t.Errorf("a client: %v, and it was executed: %v", err, applied)
		}
		if err := errors.Join(b.Check(), b.Close()); err != nil {
			t.Error(err)
		}
	})
}

func newFollower() *Broker {
	return New(engine.New(engine.Options{}), Options{Decides: func() bool { return false }})
}

// Creating the new engine can take a long time if it reads a journal from a slow disk.
// Requests that arrive during that time queue up and are executed in the next turn.
func TestQueueWhileReplacing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFollower()
		done := make(chan error)
		b.Replace(func(old *engine.Engine) *engine.Engine {
			if !b.mu.TryLock() {
				t.Fatal("requests cannot queue up")
			}
			b.mu.Unlock()
			go func() { done <- b.Call(putting("a job")) }()
			synctest.Wait()
			return old
		})
		if err := errors.Join(<-done, b.Close()); err != nil {
			t.Error(err)
		}
	})
}

// Concurrent calls of Replace all take effect.
func TestReplaceAtOnce(t *testing.T) {
	b := newFollower()
	const each, all = 500, 4
	var called atomic.Int64
	var wg sync.WaitGroup
	for range all {
		wg.Go(func() {
			for range each {
				b.Replace(func(old *engine.Engine) *engine.Engine {
					called.Add(1)
					return old
				})
			}
		})
	}
	wg.Wait()
	if n := called.Load(); n != each*all {
		t.Errorf("%d of %d calls took effect", n, each*all)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// Replace refuses to replace an engine that can make changes, because its acknowledged
// changes would be lost.
func TestReplaceWhileDeciding(t *testing.T) {
	b := newBroker(t, nil)
	err := errors.New("it was replaced")
	b.callInternal(func() {
		defer func() {
			if recover() != nil {
				err = nil
			}
		}()
		b.replace(func(old *engine.Engine) *engine.Engine { return old })
	})
	if err != nil {
		t.Error(err)
	}
}
