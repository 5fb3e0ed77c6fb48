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

// send writes what the session of c has to send, and the producers that it has
// freed.
func (r *run) send(c *conn) (over bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := r.write(c); err != nil {
		return false, err
	}
	if crew := c.s.crew; crew != nil {
		if err := r.sendFreed(crew, c.crew); err != nil {
			return false, err
		}
	}
	return c.s.finished(), nil
}

func (r *run) sendFreed(crew *crew, conns []*conn) error {
	for {
		i, ok := crew.nextFreed()
		if !ok {
			break
		}
		if err := r.write(conns[i-crew.first]); err != nil {
			return err
		}
	}
	if crew.over() {
		// They have nothing to read any more and must be told. Closing twice is harmless.
		closeAll(conns)
	}
	return nil
}

func (r *run) write(c *conn) error {
	s := c.s
	s.fill(r.now(), r.inPhase())
	if len(s.out) == 0 {
		return nil
	}
	_, err := c.Write(s.out)
	s.out = s.out[:0]
	return err
}

// endedBy returns the error of a read, or nil if the crew is over and another of
// it closed the connection.
func (c *conn) endedBy(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.s.finished() && c.s.crew != nil:
		return nil
	case errors.Is(err, io.EOF):
		return errHungUp
	}
	return err
}
