package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"time"
)

// The pauses between attempts to connect.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 2 * time.Second
)

// A retrier decides whether and when to repeat a command.
type retrier struct {
	since time.Time // time of the first failure since the last good connection
	pause time.Duration
}

// next waits before the next attempt; after a lost connection, the first one starts at
// once. It returns an error if the command must not be attempted again.
func (t *retrier) next(ctx context.Context, c *Conn, err error) error {
	if c.lasted > maxPause {
		*t = retrier{} // a reserve can wait for days and lose many connections
	}
	connected := c.lasted > 0
	switch {
	case errors.Is(err, ErrOutcomeUnknown),
		!errors.Is(err, ErrDisconnected),                    // the server has answered, or the caller has ended the command
		connected && errors.Is(err, os.ErrDeadlineExceeded), // the command's timeout has expired
		c.opt.Reconnect == 0:
		return err
	case t.since.IsZero():
		t.since = time.Now()
		if connected {
			return nil
		}
	}
	t.pause = min(max(2*t.pause, firstPause), maxPause)
	// Many clients lose the same server at the same time.
	pause := t.pause/2 + rand.N(t.pause/2) // #nosec G404 -- spreads retries
	if time.Since(t.since)+pause > c.opt.Reconnect {
		return err
	}
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), err)
	case <-c.done:
		return ErrClosed
	}
}

// end returns the time at which a reserve must be answered, even if its connection is
// lost. It is zero if the reserve does not wait or has no limit.
func (q *request) end() time.Time {
	if q.wait == 0 || q.wait == forever {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(q.Timeout) * time.Second) // the timeout was rounded up
}

// waitUntil sets the timeout to the time until end, rounded up to seconds.
func (q *request) waitUntil(end time.Time) {
	if !end.IsZero() {
		q.wait = max(time.Until(end), 0)
		q.Timeout, _ = timeout(q.wait) // the longer duration was valid
	}
}
