package broker

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// newBroker returns a broker. At the end of the test it closes the broker and checks the
// engine.
func newBroker(tb testing.TB, log Log) *Broker {
	tb.Helper()
	e := engine.New(engine.Options{Logged: log != nil})
	b := New(e, Options{Log: log})
	tb.Cleanup(func() {
		b.Close()
		if err := errors.Join(e.Check(), b.Check()); err != nil {
			tb.Error(err)
		}
		if b.commit.settled != b.commit.flushed {
			tb.Error("Close left an unsettled turn")
		}
	})
	return b
}

// A request is a Request of a client. Requests of Call and View do not come from clients.
type request func(e *engine.Engine, now int64)

func (r request) Apply(e *engine.Engine, now int64) int64 {
	r(e, now)
	return now
}

// putting returns a function that puts a job into the default tube.
func putting(body string) func(*engine.Engine, int64) {
	return func(e *engine.Engine, now int64) {
		s := e.Open(nil)
		e.Put(now, s, engine.Spec{}, []byte(body))
		e.Close(now, s)
	}
}

// Promises 1 and 6: The broker executes each request exactly once, one at a time, at
// increasing times, and each caller's requests in the order of its calls.
func TestOrder(t *testing.T) {
	const callers, each = 16, 200
	b := newBroker(t, nil)
	type event struct {
		caller, n int
		now       int64
	}
	var events []event // without a lock: the race detector judges promise 1
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			n, applied := 0, 0
			c := b.NewCaller(request(func(_ *engine.Engine, now int64) {
				events = append(events, event{i, n, now})
				applied++
			}))
			for n = range each {
				c.Do()
				if applied != n+1 {
					t.Errorf("caller %d: %d requests applied after %d calls", i, applied, n+1)
				}
			}
		})
	}
	wg.Wait()

	if len(events) != callers*each {
		t.Fatalf("%d requests were applied, not %d", len(events), callers*each)
	}
	next := make([]int, callers)
	for i, ev := range events {
		if ev.n != next[ev.caller] {
			t.Fatalf("caller %d: request %d was executed instead of %d", ev.caller, ev.n, next[ev.caller])
		}
		next[ev.caller]++
		if i > 0 && ev.now <= events[i-1].now {
			t.Fatalf("request %d at %d ns, the previous one at %d", i, ev.now, events[i-1].now)
		}
	}
}

// Promise 1: The broker executes requests in the order of the calls of Do.
func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, nil)
		begun, mayEnd := make(chan bool), make(chan bool)
		go b.Call(func(*engine.Engine, int64) {
			begun <- true
			<-mayEnd
		})
		<-begun
		var order []int
		for i := range 20 {
			go b.Call(func(*engine.Engine, int64) { order = append(order, i) })
			synctest.Wait() // the request is in the queue
		}
		mayEnd <- true
		synctest.Wait()
		if !slices.IsSorted(order) || len(order) != 20 {
			t.Errorf("applied in the order %v", order)
		}
	})
}

// Promise 6 holds even if the clock stands still, or if a request has many commands.
func TestTimeAdvances(t *testing.T) {
	e := engine.New(engine.Options{})
	b := New(e, Options{Now: func() int64 { return 7 }})
	defer b.Close()
	var times []int64
	note := func(_ *engine.Engine, now int64) { times = append(times, now) }
	b.Call(note)
	b.Call(note)
	b.NewCaller(longRequest{1000}).Do()
	b.Call(note)
	if want := []int64{7, 9, 1013}; !slices.Equal(times, want) {
		t.Errorf("requests at %v ns, want %v", times, want)
	}
}

type longRequest struct{ commands int64 }

func (r longRequest) Apply(_ *engine.Engine, now int64) int64 { return now + r.commands }

// Do does not allocate, either alone or when other requests arrive during its turn.
func TestDoAllocates(t *testing.T) {
	b := newBroker(t, nil)
	c := b.NewCaller(request(func(*engine.Engine, int64) {}))
	if n := testing.AllocsPerRun(1000, func() { c.Do() }); n != 0 {
		t.Errorf("Do makes %v allocations", n)
	}

	const others = 8
	begin, done := make(chan bool), make(chan bool)
	for range others {
		go func() {
			c := b.NewCaller(request(func(*engine.Engine, int64) { runtime.Gosched() }))
			for range begin {
				c.Do()
				done <- true
			}
		}()
	}
	contended := b.NewCaller(request(func(*engine.Engine, int64) { runtime.Gosched() }))
	n := testing.AllocsPerRun(1000, func() {
		for range others {
			begin <- true
		}
		contended.Do()
		for range others {
			<-done
		}
	})
	close(begin)
	if n != 0 {
		t.Errorf("Do with %d other callers makes %v allocations", others, n)
	}
}
