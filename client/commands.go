package client

import (
	"cmp"
	"context"
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// commands contains the methods that Conn and Pool share.
type commands struct{ of connSource }

// A connSource provides connections for commands. It is a Conn or a Pool.
type connSource interface {
	Addr() string

	// checkOut returns a connection for exclusive use, if possible one that uses the
	// tube.
	checkOut(ctx context.Context, tube string) (*Conn, error)
	checkIn(c *Conn)
}

// in sets the tube of a request. An empty name means "default".
func (q *request) in(tube string) error {
	q.tube = cmp.Or(tube, defaultTube)
	return CheckTube(q.tube)
}

// fail returns the error of a failed command. The error of a reply lacks the tube, which
// the request contains.
func (c *commands) fail(q *request, err error) error {
	return &Error{Verb: q.Op.String(), Job: q.ID, Tube: cmp.Or(string(q.Tube), q.tube), Addr: c.of.Addr(), Err: err}
}

// call sends a command whose reply is one word.
func (c *commands) call(ctx context.Context, q *request) error {
	conn, err := c.of.checkOut(ctx, q.tube)
	if err != nil {
		return c.fail(q, err)
	}
	defer c.of.checkIn(conn)
	_, err = conn.do(ctx, q)
	return err
}

// callByID sends a command for a job whose reply is one word.
func (c *commands) callByID(ctx context.Context, op wire.Op, want wire.Word, id uint64) error {
	return c.call(ctx, &request{Command: wire.Command{Op: op, ID: id}, want: want})
}

// ask sends a command and calls read with the reply while it has the turn. If err is not
// nil, it sends nothing.
func (c *commands) ask(ctx context.Context, q *request, err error, read func(*wire.Reply) error) error {
	if err != nil {
		return c.fail(q, err)
	}
	conn, err := c.of.checkOut(ctx, q.tube)
	if err != nil {
		return c.fail(q, err)
	}
	defer c.of.checkIn(conn)
	r, err := conn.do(ctx, q)
	if err != nil {
		return err
	}
	if err := read(&r); err != nil {
		conn.drop(err)
		return c.fail(q, fmt.Errorf("%w: %w", ErrProtocol, err))
	}
	return nil
}

// askNumber is ask for a command whose reply is a number.
func (c *commands) askNumber(ctx context.Context, q *request, err error) (n int, _ error) {
	err = c.ask(ctx, q, err, func(r *wire.Reply) error {
		n = int(r.N)
		return nil
	})
	return n, err
}

// askList is ask for a command whose reply is a list of names.
func (c *commands) askList(ctx context.Context, op wire.Op) (names []string, err error) {
	err = c.ask(ctx, &request{Command: wire.Command{Op: op}, want: wire.OK}, nil, func(r *wire.Reply) error {
		names, err = wire.ParseList(r.Body)
		return err
	})
	return names, err
}

// askMany sends n commands that do not depend on the tube in use, in few round trips.
// build creates command i. If done is not nil, it receives the successful replies.
func (c *commands) askMany(ctx context.Context, n int, build func(int, *request), done func(int, *wire.Reply)) error {
	if n == 0 {
		return nil
	}
	conn, err := c.of.checkOut(ctx, "")
	if err != nil {
		return c.failed(build, 0, err)
	}
	defer c.of.checkIn(conn)
	errs := make([]error, n)
	conn.many(ctx, errs, 0, "", build, done)
	return batchError(errs)
}

// failed returns the error of a failed command of a batch.
func (c *commands) failed(build func(int, *request), i int, err error) error {
	var q request
	build(i, &q)
	return c.fail(&q, err)
}
