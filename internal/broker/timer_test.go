package broker

import (
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A worker is a session that records the results and times of its waits. Turns guard its
// records.
type worker struct {
	b     *Broker
	s     *engine.Session
	begun time.Time
	heard []string
}

func newWorker(b *Broker) *worker {
	w := &worker{b: b, begun: time.Now()}
	b.Call(func(e *engine.Engine, _ int64) { w.s = e.Open(w) })
	return w
}

func (w *worker) WaitOver(job engine.Job, o engine.Outcome) { w.note(job, o) }

func (w *worker) note(job engine.Job, o engine.Outcome) {
	what := string(job.Body)
	switch o {
	case engine.Waiting:
		return
	case engine.TimedOut:
		what = "timed out"
	case engine.DeadlineSoon:
		what = "deadline soon"
	}
	w.heard = append(w.heard, fmt.Sprint(time.Since(w.begun).Round(time.Second), " ", what))
}

func (w *worker) reserve(timeout int64) {
	w.b.Call(func(e *engine.Engine, now int64) { w.note(e.Reserve(now, w.s, timeout)) })
}

// want compares the results since the last call.
func (w *worker) want(t *testing.T, heard ...string) {
	t.Helper()
	w.b.Call(func(*engine.Engine, int64) {
		if !slices.Equal(w.heard, heard) {
			t.Errorf("results %q, want %q", w.heard, heard)
		}
		w.heard = nil
	})
}

func (w *worker) put(spec engine.Spec, body string) {
	w.b.Call(func(e *engine.Engine, now int64) { e.Put(now, w.s, spec, []byte(body)) })
}

// Due events occur without a request: delays, TTRs, pauses, timeouts of reserves, and the
// warning before a TTR ends.
func TestTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, nil)
		w := newWorker(b)
		w.put(engine.Spec{Delay: 10, TTR: 100}, "delayed")
		w.reserve(engine.Forever)
		time.Sleep(9999 * time.Millisecond)
		w.want(t)
		time.Sleep(2 * time.Millisecond)
		w.want(t, "10s delayed")

		other := newWorker(b) // gets the job when the TTR expires
		other.reserve(engine.Forever)
		w.reserve(5)
		time.Sleep(6 * time.Second)
		w.want(t, "15s timed out")
		w.reserve(engine.Forever)
		time.Sleep(94 * time.Second)
		w.want(t, "1m49s deadline soon")
		other.want(t, "1m40s delayed")

		b.Call(func(e *engine.Engine, now int64) { e.Pause(now, []byte("default"), 30) })
		w.put(engine.Spec{}, "paused")
		w.reserve(engine.Forever)
		time.Sleep(29 * time.Second)
		w.want(t)
		time.Sleep(2 * time.Second)
		w.want(t, "2m20s paused")
	})
}

// The timer is reset for an event that is due earlier, and no event is lost.
func TestTimerIsSetEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, nil)
		w := newWorker(b)
		for _, delay := range []uint32{3600, 60, 600, 1} {
			w.put(engine.Spec{Delay: delay, TTR: 1 << 20}, "job")
		}
		for range 4 {
			newWorker(b) // other sessions must have no effect
			w.reserve(engine.Forever)
			time.Sleep(time.Hour)
		}
		w.want(t, "1s job", "1h0m0s job", "2h0m0s job", "3h0m0s job")

		for _, delay := range []uint32{600, 60, 1} {
			w.put(engine.Spec{Delay: delay, TTR: 1 << 20}, strconv.Itoa(int(delay)))
		}
		var waiters []*worker
		for range 3 {
			waiters = append(waiters, newWorker(b))
			waiters[len(waiters)-1].reserve(engine.Forever)
		}
		time.Sleep(time.Hour)
		waiters[0].want(t, "1s 1")
		waiters[1].want(t, "1m0s 60")
		waiters[2].want(t, "10m0s 600")
	})
}

// Promise 5: events that are due at the start of a turn occur before its requests, even
// if the timer has not fired.
func TestDueBeforeRequests(t *testing.T) {
	now := int64(0)
	b := New(engine.New(engine.Options{}), Options{Now: func() int64 { return now }})
	defer b.Close()
	w := newWorker(b)
	w.put(engine.Spec{Delay: 3600}, "delayed")
	now += int64(2 * time.Hour)
	b.Call(func(e *engine.Engine, now int64) {
		if st := e.Stats(); st.Ready != 1 || st.Delayed != 0 {
			t.Errorf("an hour after the delay: %d ready, %d delayed", st.Ready, st.Delayed)
		}
	})
}

// If more events are due than one Tick handles, the broker handles the rest in later
// turns, and executes requests in between.
func TestTickInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs = 10000 // several times the limit of one Tick
		log := newFakeLog()
		b := newBroker(t, log)
		begun, mayEnd := make(chan bool), make(chan bool)
		var holding atomic.Bool
		log.housekeep = func(int64) int64 {
			if holding.Load() {
				begun <- true
				<-mayEnd
			}
			return engine.Never
		}
		w := newWorker(b)
		b.Call(func(e *engine.Engine, now int64) {
			for range jobs {
				e.Put(now, w.s, engine.Spec{Delay: 10}, nil)
			}
		})
		time.Sleep(9 * time.Second)
		b.Call(func(*engine.Engine, int64) {}) // no event is due before this
		holding.Store(true)
		time.Sleep(2 * time.Second)
		var between []uint64 // numbers of ready jobs
		for range 3 {
			<-begun // a piece of the work is done
			go b.Call(func(e *engine.Engine, _ int64) { between = append(between, e.Stats().Ready) })
			synctest.Wait()
			mayEnd <- true
		}
		<-begun
		holding.Store(false)
		mayEnd <- true
		time.Sleep(time.Second)
		if !slices.IsSorted(between) || len(between) != 3 || between[0] == 0 || between[0] >= jobs {
			t.Errorf("requests in between found %v of %d jobs ready", between, jobs)
		}
		b.Call(func(e *engine.Engine, _ int64) {
			if st := e.Stats(); st.Ready != jobs {
				t.Errorf("at the end %d of %d jobs are ready", st.Ready, jobs)
			}
		})
	})
}

// If a turn leaves due events, it notifies the callback, which runs the remaining turns.
// If the callback runs none, the broker runs them.
func TestNotifyMoreDue(t *testing.T) {
	for _, helps := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			const jobs = 10000 // several times the limit of one Tick
			b := newBroker(t, nil)
			told, ended := make(chan bool, 1), make(chan bool)
			var tells atomic.Int64
			b.OnMoreDue(func() {
				tells.Add(1)
				select {
				case told <- true:
				default:
				}
			})
			if helps {
				go func() {
					defer close(ended)
					for range told {
						b.Call(func(*engine.Engine, int64) {})
					}
				}()
			} else {
				close(ended)
			}
			w := newWorker(b)
			b.Call(func(e *engine.Engine, now int64) {
				for range jobs {
					e.Put(now, w.s, engine.Spec{Delay: 10}, nil)
				}
			})
			if n := tells.Load(); n != 0 {
				t.Errorf("%d notifications before an event was due", n)
			}
			began := time.Now()
			time.Sleep(10*time.Second + time.Millisecond)
			ready := 0
			count := func() {
				b.Call(func(e *engine.Engine, _ int64) { ready = int(e.Stats().Ready) })
			}
			if count(); (ready == jobs) != helps || ready == 0 {
				t.Errorf("with help %v, %d of %d jobs are ready at once", helps, ready, jobs)
			}
			time.Sleep(time.Minute)
			if count(); ready != jobs || tells.Load() < 2 {
				t.Errorf("%d of %d jobs are ready %v after their put; %d notifications", ready, jobs, time.Since(began), tells.Load())
			}
			close(told)
			<-ended
			b.OnMoreDue(func() {})
		})
	}
}

// After Close no event comes due, and the broker does not use the engine, even if the
// timer has just fired.
func TestCloseStopsTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine.New(engine.Options{})
		b := New(e, Options{})
		w := newWorker(b)
		w.put(engine.Spec{Delay: 1}, "delayed")
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		b.tick()
		b.Call(func(*engine.Engine, int64) {})
		if st := e.Stats(); st.Delayed != 1 {
			t.Error("a job became ready after Close")
		}
		if err := b.Close(); err != nil {
			t.Errorf("a second Close: %v", err)
		}
	})
}
