package load

import (
	"context"
	"errors"
	"io"

	"golang.org/x/sync/errgroup"
)

// goroutineClient is the portable client: a goroutine for each connection,
// which ends with it.
func (r *run) goroutineClient(conns []*conn) client {
	for _, c := range conns {
		c.s.tally.hist = r.histogram()
	}
	return func(ctx context.Context) error {
		defer closeAll(conns)
		g, ctx := errgroup.WithContext(ctx)
		stop := context.AfterFunc(ctx, func() {
			for _, c := range conns {
				c.SetDeadline(longAgo) // fails only on a closed connection
			}
		})
		defer stop()
		for _, c := range conns {
			g.Go(func() error { return r.fail(ctx, r.converse(c)) })
		}
		return g.Wait()
	}
}

// converse drives one connection until its script is over.
func (r *run) converse(c *conn) error {
	for {
		if over, err := r.send(c); over || err != nil {
			return err
		}
		n, err := c.Read(c.s.space())
		if err != nil {
			return c.endedBy(err)
		}
		c.s.received(n)
		now := r.now()
		c.mu.Lock()
		err = c.s.replies(now, r.inPhase())
		c.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// send writes what the session of c, and that of its peer, have to send.
func (r *run) send(c *conn) (over bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for half := c; half != nil; half = half.peer {
		s := half.s
		s.fill(r.now(), r.inPhase())
		if len(s.out) > 0 {
			if _, err := half.Write(s.out); err != nil {
				return false, err
			}
			s.out = s.out[:0]
		}
		if half.peer == c {
			break
		}
	}
	over = c.s.finished()
	if over && c.peer != nil {
		// It has nothing to read any more and must be told. Closing twice is harmless.
		c.peer.Close()
	}
	return over, nil
}

// endedBy returns the error of a read, or nil if the script was over and the
// peer closed the connection.
func (c *conn) endedBy(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.s.finished() && c.peer != nil:
		return nil
	case errors.Is(err, io.EOF):
		return errHungUp
	}
	return err
}
