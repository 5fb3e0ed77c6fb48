package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"time"
)

// Pauses between attempts to connect.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 2 * time.Second
)

// A retrier says whether and when a command may be tried again.
type retrier struct {
	since time.Time // of the first failure since there was a good connection
	pause time.Duration
}

// next waits for the next attempt, the first without a pause. It returns an
// error if there is to be none.
func (t *retrier) next(ctx context.Context, c *Conn, err error) error {
	if c.lasted > maxPause {
		*t = retrier{} // a reserve may wait for days, and lose many connections
	}
	switch {
	case errors.Is(err, ErrOutcomeUnknown),
		!errors.Is(err, ErrDisconnected),       // the server has spoken, or we are to stop
		errors.Is(err, os.ErrDeadlineExceeded), // it has had its time
		c.opt.Reconnect == 0:
		return err
	case t.since.IsZero():
		t.since = time.Now()
		return nil
	}
	t.pause = min(max(2*t.pause, firstPause), maxPause)
	// Many clients lose the same server at the same moment.
	pause := t.pause/2 + rand.N(t.pause/2) // #nosec G404 -- spreads retries
	if time.Since(t.since)+pause > c.opt.Reconnect {
		return err
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), err)
	case <-c.done:
		return ErrClosed
	}
}

// A wait is how long a reserve may wait in all, whatever happens to its
// connection.
type wait struct {
	end time.Time // zero: it does not wait, or has no limit
}

func waitOf(d time.Duration) wait {
	if d == 0 || d == forever {
		return wait{}
	}
	return wait{time.Now().Add(d)}
}

// left returns what is left, also in seconds, rounded up.
func (w wait) left() (time.Duration, uint32) {
	if w.end.IsZero() {
		return 0, 0
	}
	d := max(time.Until(w.end), 0)
	s, _ := timeout(d) // of a duration that was good when it was longer
	return d, s
}
