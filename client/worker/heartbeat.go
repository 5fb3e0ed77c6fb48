package worker

import (
	"context"
	"errors"
	"time"

	"github.com/beanpole-mq/beanpole/client"
)

// firstLook is when the time to run of a job is asked for if it is not known: early
// enough for the shortest there is, a second, and late enough for most jobs to be done.
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
	first := firstLook
	if f := job.job.Facts; f != nil {
		first = f.TTR / 3
	}
	k.timer = time.AfterFunc(first, func() {
		defer close(k.done)
		if !k.touch(ctx, job) {
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
func (k *heartbeat) touch(ctx context.Context, job *Job) bool {
	wait, every := time.Duration(0), firstLook // as if it had the shortest time to run
	if f := job.job.Facts; f != nil {
		every = f.TTR / 3
	} else if st, err := job.Stats(ctx); err == nil {
		if st.State != client.StateReserved {
			return false
		}
		every = st.TTR / 3
		wait = max(every-firstLook, 0)
	} else if lost(err) { // otherwise it is a server that does not say
		return false
	}
	for ; ; wait = every {
		select {
		case <-k.quit:
			return true
		case <-time.After(wait):
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
