package worker

import (
	"context"
	"errors"
	"time"

	"github.com/beanpole-mq/beanpole/client"
)

// ttrProbeDelay is the time after which the worker requests the time to run of a job if
// the server did not send it. It is early enough for the shortest time, a second, and
// late enough that most jobs are finished.
const ttrProbeDelay = 300 * time.Millisecond

// A heartbeat touches a job while its handler runs, and enforces the timeout of the
// handler.
type heartbeat struct {
	job     *Job
	cancel  context.CancelCauseFunc // ends the handler's context
	discard func()                  // settles the job of a handler that ignores its timeout

	timer *time.Timer // starts the goroutine
	quit  chan struct{}
	done  chan struct{} // closed when the goroutine has ended
	gone  bool          // discard was called; valid after done
}

// start touches the job until stop is called, three times as often as necessary. When the
// job is lost, it cancels the context with ErrLost; after the timeout, with ErrTimeout.
// killGrace later, it calls discard once. A negative timeout means no limit.
func (k *heartbeat) start(ctx context.Context, timeout time.Duration) {
	k.quit, k.done = make(chan struct{}), make(chan struct{})
	first, began := ttrProbeDelay, time.Now()
	if f := k.job.job.Facts; f != nil {
		first = f.TTR / 3
	}
	begin := first
	if timeout >= 0 {
		begin = min(first, timeout)
	}
	k.timer = time.AfterFunc(begin, func() {
		defer close(k.done)
		var limit <-chan time.Time
		if timeout >= 0 {
			limit = time.After(timeout - time.Since(began))
		}
		k.run(ctx, first, time.After(first-begin), limit)
	})
}

// stop returns when the heartbeat no longer uses the connection. gone reports whether the
// job was given up.
func (k *heartbeat) stop() (gone bool) {
	if k.timer.Stop() {
		return false
	}
	close(k.quit)
	<-k.done
	return k.gone
}

// run touches the job, first after touch, until stop is called or the job is lost or given
// up.
func (k *heartbeat) run(ctx context.Context, every time.Duration, touch, limit <-chan time.Time) {
	known, timedOut := k.job.job.Facts != nil, false
	for {
		select {
		case <-k.quit:
			return
		case <-limit:
			if timedOut {
				k.gone = true
				k.discard()
				return
			}
			timedOut = true
			k.cancel(ErrTimeout)
			limit = time.After(killGrace)
			continue
		case <-touch:
		}
		if !known {
			known = true
			st, err := k.job.Stats(ctx)
			if lost(err) || err == nil && st.State != client.StateReserved {
				k.cancel(ErrLost)
				return
			}
			if err == nil {
				every = st.TTR / 3
				touch = time.After(max(every-ttrProbeDelay, 0))
				continue
			}
		}
		if lost(k.job.Touch(ctx)) {
			k.cancel(ErrLost)
			return
		}
		touch = time.After(every)
	}
}

// lost reports whether an error means that the job is lost. A job is also lost with its
// connection, because the server gives it to another worker.
func lost(err error) bool {
	return errors.Is(err, client.ErrNotFound) || errors.Is(err, client.ErrDisconnected)
}
