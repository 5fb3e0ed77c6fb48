package worker

import (
	"context"
	"errors"
	"time"

	"github.com/beanpole-mq/beanpole/client"
)

// firstLook is when the time to run of a job is asked for if it is not known: early enough for the
// shortest there is, a second, and late enough for most jobs to be done.
const firstLook = 300 * time.Millisecond

// A heartbeat touches a job while its handler runs.
type heartbeat struct {
	timer *time.Timer // starts the goroutine
	quit  chan struct{}
	done  chan struct{} // closed when the goroutine has ended
}

// startHeartbeat touches the job until stop is called, three times as often as necessary.
// When it finds that the job is lost it ends the handler's context.
func startHeartbeat(ctx context.Context, cancel context.CancelCauseFunc, job *Job) *heartbeat {
	k := &heartbeat{quit: make(chan struct{}), done: make(chan struct{})}
	first, known := firstLook, false
	if f := job.job.Facts; f != nil {
		first, known = f.TTR/3, true
	}
	k.timer = time.AfterFunc(first, func() {
		defer close(k.done)
		if !k.touch(ctx, job, known) {
			cancel(ErrLost)
		}
	})
	return k
}

// stop returns when the job is not touched any more: the connection is free.
func (k *heartbeat) stop() {
	if k.timer.Stop() {
		return
	}
	close(k.quit)
	<-k.done
}

// touch touches a job until it is told to quit. It returns false as soon as the job
// is lost.
func (k *heartbeat) touch(ctx context.Context, job *Job, known bool) bool {
	if known {
		return k.keep(ctx, job, 0, job.job.Facts.TTR/3)
	}
	every := firstLook // as if it had the shortest time to run
	switch st, err := job.Stats(ctx); {
	case lost(err):
		return false
	case err != nil: // a server that does not say
	case st.State != client.StateReserved:
		return false
	default:
		every = st.TTR / 3
	}
	return k.keep(ctx, job, max(every-firstLook, 0), every)
}

// keep is touch when it is known how often, and when first.
func (k *heartbeat) keep(ctx context.Context, job *Job, first, every time.Duration) bool {
	for wait := first; ; wait = every {
		t := time.NewTimer(wait)
		select {
		case <-k.quit:
			t.Stop()
			return true
		case <-t.C:
		}
		if lost(job.Touch(ctx)) {
			return false
		}
	}
}

// lost tells from an error whether a job is lost. Without a connection it is: the
// server has given it to others.
func lost(err error) bool {
	return errors.Is(err, client.ErrNotFound) || errors.Is(err, client.ErrDisconnected)
}
