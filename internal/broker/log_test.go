package broker

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A fakeLog remembers what reached it, blocks when told so, and fails when
// told so. Its calls must come one at a time; the race detector looks.
type fakeLog struct {
	inside    atomic.Bool
	appended  []string // bodies of puts, in order
	committed int      // how many of appended
	batches   []int    // how many changes each Append took
	commits   int
	closed    int

	appendErr, commitErr, closeErr error

	housekeep func(now int64) int64
	kept      []int64 // the times at which Housekeep was called

	blocking       atomic.Bool // Commit sends to begins, then receives from mayEnd
	begins, mayEnd chan struct{}
}

func newFakeLog() *fakeLog {
	return &fakeLog{begins: make(chan struct{}), mayEnd: make(chan struct{})}
}

// only panics when two calls run at the same time.
func (l *fakeLog) only() (leave func()) {
	if l.inside.Swap(true) {
		panic("two calls of the Log at the same time")
	}
	return func() { l.inside.Store(false) }
}

func (l *fakeLog) Append(changes []engine.Change) error {
	defer l.only()()
	l.batches = append(l.batches, len(changes))
	for _, c := range changes {
		l.appended = append(l.appended, string(c.Body))
	}
	return l.appendErr
}

func (l *fakeLog) Housekeep(now int64) int64 {
	defer l.only()()
	l.kept = append(l.kept, now)
	if l.housekeep == nil {
		return engine.Never
	}
	return l.housekeep(now)
}

func (l *fakeLog) Commit() error {
	defer l.only()()
	l.commits++
	if l.blocking.Load() {
		l.begins <- struct{}{}
		<-l.mayEnd
	}
	if l.commitErr == nil {
		l.committed = len(l.appended)
	}
	return l.commitErr
}

func (l *fakeLog) Close() error {
	defer l.only()()
	l.closed++
	return l.closeErr
}

// Those who come during a Commit form one turn, with one Append and one
// Commit, and none of them returns before that.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 50
		log := newFakeLog()
		b := newBroker(t, log)
		var first, rest atomic.Int32 // returned

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
		if first.Load() != 0 || rest.Load() != 0 {
			t.Fatal("a Do returned before its Commit")
		}
		log.mayEnd <- struct{}{}
		<-log.begins
		synctest.Wait()
		if first.Load() != 1 || rest.Load() != 0 {
			t.Fatalf("after the first Commit: %d of its turn have returned and %d of the next", first.Load(), rest.Load())
		}
		log.blocking.Store(false)
		log.mayEnd <- struct{}{}
		synctest.Wait()
		if rest.Load() != n {
			t.Errorf("%d of %d have returned", rest.Load(), n)
		}
		if want := []int{1, n}; !slices.Equal(log.batches, want) || log.commits != 2 {
			t.Errorf("Append took %v changes in %d commits, want %v in 2", log.batches, log.commits, want)
		}
	})
}

// Promise 2, with many callers: the log has what they did, in the order in
// which it was done, and whoever has returned is in a commit.
func TestLogOrder(t *testing.T) {
	const callers, each = 8, 100
	log := newFakeLog()
	b := newBroker(t, log)
	var order []string
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for n := range each {
				body := fmt.Sprint(i, "/", n)
				put := putting(body)
				err := b.Call(func(e *engine.Engine, now int64) {
					order = append(order, body)
					put(e, now)
				})
				if err != nil {
					t.Error(err)
				}
				b.Call(func(*engine.Engine, int64) { // nobody else is in the Log now
					if !slices.Contains(log.appended[:log.committed], body) {
						t.Errorf("%s has returned and is not committed", body)
					}
				})
			}
		})
	}
	wg.Wait()
	if !slices.Equal(log.appended, order) {
		t.Error("the log has another order than the requests")
	}
	if log.committed != callers*each {
		t.Errorf("%d of %d changes are committed", log.committed, callers*each)
	}
}

// A waker notes where its wake came.
type waker func()

func (w waker) Wake() { w() }

// Promise 3: who is waked is so after Commit, once.
func TestWakeAfterCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newFakeLog()
		b := newBroker(t, log)
		var waked atomic.Int32
		log.blocking.Store(true)
		go b.Call(func(*engine.Engine, int64) {
			b.Wake(waker(func() { waked.Add(1) }))
			b.Wake(waker(func() { waked.Add(10) }))
		})
		<-log.begins
		synctest.Wait()
		if waked.Load() != 0 {
			t.Error("waked before Commit")
		}
		log.blocking.Store(false)
		log.mayEnd <- struct{}{}
		synctest.Wait()
		if waked.Load() != 11 {
			t.Errorf("after Commit the wakers count %d, want 11", waked.Load())
		}
		b.Call(func(*engine.Engine, int64) {})
		if waked.Load() != 11 {
			t.Error("waked again by the next turn")
		}
	})
}

var errDisk = errors.New("the disk is on fire")

// When Append or Commit fails, everybody in that turn hears of it, nobody else
// does, and later turns work.
func TestLogFails(t *testing.T) {
	for name, fail := range map[string]func(l *fakeLog, err error){
		"Append": func(l *fakeLog, err error) { l.appendErr = err },
		"Commit": func(l *fakeLog, err error) { l.commitErr = err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 10
				log := newFakeLog()
				b := newBroker(t, log)
				log.blocking.Store(true)
				var wg sync.WaitGroup
				wg.Go(func() {
					if err := b.Call(putting("before")); err != nil {
						t.Errorf("the turn before failed: %v", err)
					}
				})
				<-log.begins
				var failed [n]error
				for i := range n {
					put := putting("during")
					wg.Go(func() {
						failed[i] = b.Call(func(e *engine.Engine, now int64) {
							fail(log, errDisk)
							put(e, now)
						})
					})
				}
				synctest.Wait() // all are in the queue, and Commit blocks
				log.blocking.Store(false)
				log.mayEnd <- struct{}{}
				wg.Wait()
				for i, err := range failed {
					if !errors.Is(err, errDisk) {
						t.Errorf("request %d of the turn that failed: %v", i, err)
					}
				}
				if want := []int{1, n}; !slices.Equal(log.batches, want) {
					t.Errorf("Append took %v, want %v: all in the turn that failed", log.batches, want)
				}
				b.Call(func(*engine.Engine, int64) { fail(log, nil) })
				if err := b.Call(putting("after")); err != nil {
					t.Errorf("the turn after failed: %v", err)
				}
			})
		})
	}
}

// Housekeep is called in each turn, and without one when it wants to be.
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
				t.Errorf("%d calls, want one a turn", len(log.kept))
			}
		})
	})
}

// Close commits the requests of its turn before it closes the log, and what
// comes after it fails instead of being acknowledged.
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
		synctest.Wait()
		wg.Go(func() {
			if err := b.Close(); !errors.Is(err, errDisk) {
				t.Errorf("Close returned %v, want the error of the log's Close", err)
			}
		})
		synctest.Wait()
		log.blocking.Store(false)
		log.mayEnd <- struct{}{}
		wg.Wait()
		if log.committed != 2 || log.closed != 1 {
			t.Errorf("%d of 2 puts are committed, the log closed %d times", log.committed, log.closed)
		}
		if err := b.Call(putting("after")); !errors.Is(err, ErrClosed) {
			t.Errorf("a put after Close: %v, want ErrClosed", err)
		}
		if len(log.appended) != 2 {
			t.Error("the closed log was used")
		}
	})
}
