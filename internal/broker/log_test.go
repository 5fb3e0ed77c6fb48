package broker

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A fakeLog records its calls. Its Sync can block, and all its methods can fail. Calls
// must not overlap, except that a Sync can overlap other calls. The race detector checks
// that.
type fakeLog struct {
	inside   atomic.Bool
	syncing  atomic.Bool
	appended []string // bodies of puts, in order
	batches  []int    // number of changes that each Append took
	dirty    bool     // a record was appended since the last Flush
	closed   int

	flushed atomic.Int64 // number of changes in appended that were flushed
	synced  atomic.Int64
	syncs   atomic.Int64

	appendErr, flushErr, closeErr error
	syncErr                       atomic.Pointer[error]

	housekeep func(now int64) int64
	kept      []int64 // the times at which Housekeep was called

	blocking       atomic.Bool // Sync sends to begins, then receives from mayEnd
	begins, mayEnd chan struct{}
}

func newFakeLog() *fakeLog {
	return &fakeLog{begins: make(chan struct{}), mayEnd: make(chan struct{})}
}

// only panics if two calls overlap.
func only(inside *atomic.Bool) (leave func()) {
	if inside.Swap(true) {
		panic("two calls of the Log at the same time")
	}
	return func() { inside.Store(false) }
}

func (l *fakeLog) Append(changes []engine.Change) error {
	defer only(&l.inside)()
	l.batches = append(l.batches, len(changes))
	for _, c := range changes {
		l.appended = append(l.appended, string(c.Body))
	}
	l.dirty = true
	return l.appendErr
}

func (l *fakeLog) Flush() (durable bool, err error) {
	defer only(&l.inside)()
	if !l.dirty {
		return true, nil
	}
	l.dirty = false
	if l.flushErr == nil {
		l.flushed.Store(int64(len(l.appended)))
	}
	return false, l.flushErr
}

func (l *fakeLog) Sync() error {
	defer only(&l.syncing)()
	l.syncs.Add(1)
	flushed := l.flushed.Load()
	if l.blocking.Load() {
		l.begins <- struct{}{}
		<-l.mayEnd
	}
	if err := l.syncErr.Load(); err != nil {
		return *err
	}
	l.synced.Store(flushed)
	return nil
}

func (l *fakeLog) failSyncs(err error) {
	if err == nil {
		l.syncErr.Store(nil)
		return
	}
	l.syncErr.Store(&err)
}

func (l *fakeLog) Housekeep(now int64) int64 {
	defer only(&l.inside)()
	l.kept = append(l.kept, now)
	if l.housekeep == nil {
		return engine.Never
	}
	return l.housekeep(now)
}

func (l *fakeLog) Close() error {
	defer only(&l.inside)()
	defer only(&l.syncing)()
	l.closed++
	return l.closeErr
}

// end ends the current sync and unblocks later ones.
func (l *fakeLog) end() {
	l.blocking.Store(false)
	l.mayEnd <- struct{}{}
}

// Turns continue during a sync. They share the next sync, and no call of Do returns
// before the sync that covers it.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 50
		log := newFakeLog()
		b := newBroker(t, log)
		var first, rest atomic.Int32 // calls that have returned

		log.blocking.Store(true)
		go func() {
			b.Call(putting("first"))
			first.Add(1)
		}()
		<-log.begins
		for range n {
			go func() {
				b.Call(putting("one of the rest"))
				rest.Add(1)
			}()
		}
		synctest.Wait()
		if got := len(log.appended); got != 1+n {
			t.Fatalf("during a sync %d changes were appended, want %d", got, 1+n)
		}
		if first.Load() != 0 || rest.Load() != 0 {
			t.Fatal("a Do returned before its sync")
		}
		log.mayEnd <- struct{}{}
		<-log.begins
		synctest.Wait()
		if first.Load() != 1 || rest.Load() != 0 {
			t.Fatalf("after the first sync: %d have returned that it covers, and %d of the rest", first.Load(), rest.Load())
		}
		log.end()
		synctest.Wait()
		if rest.Load() != n {
			t.Errorf("%d of %d have returned", rest.Load(), n)
		}
		if n := log.syncs.Load(); n != 2 {
			t.Errorf("%d syncs, want 2", n)
		}
	})
}

// Callers that queue up during a turn share one turn, with one Append and one sync.
func TestOneTurnOneAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 50
		log := newFakeLog()
		b := newBroker(t, log)
		begun, mayEnd := make(chan bool), make(chan bool)
		go b.Call(func(*engine.Engine, int64) {
			begun <- true
			<-mayEnd
		})
		<-begun
		for range n {
			go b.Call(putting("a job"))
		}
		synctest.Wait()
		mayEnd <- true
		synctest.Wait()
		if want := []int{n}; !slices.Equal(log.batches, want) || log.syncs.Load() != 1 {
			t.Errorf("Append took %v changes in %d syncs, want %v in 1", log.batches, log.syncs.Load(), want)
		}
	})
}

// A hearing is a Settler that sends its results to a channel.
type hearing chan error

func (h hearing) Settled(err error) { h <- err }

// A turn notifies its waiters once, when it is settled.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newFakeLog()
		b := newBroker(t, log)
		heard := make(hearing, 9)
		log.blocking.Store(true)
		put := putting("a job")
		go b.Call(func(e *engine.Engine, now int64) {
			put(e, now)
			b.Await(heard)
			b.Await(heard)
		})
		<-log.begins
		synctest.Wait()
		if len(heard) != 0 {
			t.Error("notified before the sync")
		}
		log.end()
		synctest.Wait()
		if len(heard) != 2 {
			t.Errorf("%d notifications after the sync, want 2", len(heard))
		}
		b.Call(func(*engine.Engine, int64) {})
		if len(heard) != 2 {
			t.Error("notified again by the next turn")
		}
	})
}

var errDisk = errors.New("the disk is on fire")

// If the log fails, only callers whose changes are not durable get the error. Later turns
// work.
func TestLogFails(t *testing.T) {
	for name, fail := range map[string]func(l *fakeLog, err error){
		"Append": func(l *fakeLog, err error) { l.appendErr = err },
		"Flush":  func(l *fakeLog, err error) { l.flushErr = err },
		"Sync":   func(l *fakeLog, err error) { l.failSyncs(err) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 10
				log := newFakeLog()
				b := newBroker(t, log)
				if err := b.Call(putting("before")); err != nil {
					t.Errorf("a turn before failed: %v", err)
				}
				b.Call(func(*engine.Engine, int64) { fail(log, errDisk) })
				var wg sync.WaitGroup
				for range n {
					wg.Go(func() {
						if err := b.Call(putting("during")); !errors.Is(err, errDisk) {
							t.Errorf("a turn that failed: %v", err)
						}
					})
				}
				wg.Wait()
				synctest.Wait() // a sync that has notified them has ended
				if err := b.Call(func(*engine.Engine, int64) {}); err != nil {
					t.Errorf("a turn without changes failed: %v", err)
				}
				b.Call(func(*engine.Engine, int64) { fail(log, nil) })
				if err := b.Call(putting("after")); err != nil {
					t.Errorf("a turn after failed: %v", err)
				}
			})
		})
	}
}

type settler func(error)

func (f settler) Settled(err error) { f(err) }

// After a failed sync the broker runs a turn without a request, in which the log can
// heal.
func TestTurnAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newFakeLog()
		b := newBroker(t, log)
		log.failSyncs(errDisk)
		if err := b.Call(putting("a job")); !errors.Is(err, errDisk) {
			t.Fatalf("the put: %v", err)
		}
		synctest.Wait()
		if len(log.kept) != 2 {
			t.Errorf("Housekeep was called %d times, want 2", len(log.kept))
		}
		log.failSyncs(nil)
	})
}

// The broker calls Housekeep in each turn, and at the time that Housekeep requested if
// there is no turn.
func TestHousekeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newFakeLog()
		log.housekeep = func(now int64) int64 {
			if now < int64(3*time.Second) {
				return now + int64(time.Second)
			}
			return engine.Never
		}
		b := newBroker(t, log)
		b.Call(func(*engine.Engine, int64) {})
		time.Sleep(time.Hour)
		b.Call(func(*engine.Engine, int64) {
			if len(log.kept) != 4 || time.Duration(log.kept[3]).Round(time.Second) != 3*time.Second {
				t.Errorf("called at %v ns, want about 0, 1, 2 and 3 s", log.kept)
			}
		})
		b.Call(func(*engine.Engine, int64) {
			if len(log.kept) != 5 {
				t.Errorf("%d calls, want one per turn", len(log.kept))
			}
		})
	})
}

// Close settles all earlier requests before it closes the log, including those for which
// no caller has started a sync. Later requests fail.
func TestCloseWithLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newFakeLog()
		log.closeErr = errDisk
		b := New(engine.New(engine.Options{Logged: true}), Options{Log: log})
		log.blocking.Store(true)
		var wg sync.WaitGroup
		wg.Go(func() { b.Call(putting("before")) })
		<-log.begins
		wg.Go(func() {
			if err := b.Call(putting("beside")); err != nil {
				t.Errorf("a request beside Close: %v", err)
			}
		})
		wg.Go(func() {
			if err := b.Close(); !errors.Is(err, errDisk) {
				t.Errorf("Close returned %v, want the error of the log's Close", err)
			}
		})
		synctest.Wait()
		heard := make(hearing, 1)
		b.NewCaller(request(putting("started"))).Start(heard)
		log.end()
		wg.Wait()
		if err := <-heard; err != nil {
			t.Errorf("a request beside Close: %v", err)
		}
		if log.synced.Load() != 3 || log.closed != 1 {
			t.Errorf("%d of 3 puts are durable, the log closed %d times", log.synced.Load(), log.closed)
		}
		if err := b.Call(putting("after")); !errors.Is(err, ErrClosed) {
			t.Errorf("a put after Close: %v, want ErrClosed", err)
		}
		if len(log.appended) != 3 {
			t.Error("the closed log was used")
		}
		if err := errors.Join(b.Close(), b.Check()); err != nil {
			t.Errorf("a second Close: %v", err)
		}
	})
}
