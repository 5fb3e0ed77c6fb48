package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/beanpole-mq/beanpole/client"
)

// A crowd burdens a server without taking part in the load. It consists of tubes with one
// job each, and of silent connections. The zero value is empty.
type crowd struct {
	idle []*client.Conn
}

// gather creates the tubes and opens the idle connections. The caller must call disperse,
// even after an error.
func (c *crowd) gather(ctx context.Context, o *Options) error {
	if err := occupy(ctx, o); err != nil {
		return err
	}
	c.idle = make([]*client.Conn, max(o.Idle, 0))
	return prepareAll(ctx, len(c.idle), "idle connections are open", func(ctx context.Context, i int) (err error) {
		if c.idle[i], err = client.Dial(ctx, o.Addr, &client.Options{Reconnect: client.Never}); err != nil {
			return err
		}
		return c.use(ctx, i, o)
	})
}

func (c *crowd) disperse() {
	for _, conn := range c.idle {
		if conn != nil {
			conn.Close()
		}
	}
}

// verify checks that the idle connections still work. A server that had closed them would
// have had less to do.
func (c *crowd) verify(ctx context.Context, o *Options) error {
	return prepareAll(ctx, len(c.idle), "idle connections have stayed open", func(ctx context.Context, i int) error { return c.use(ctx, i, o) })
}

// use sends a command on an idle connection, so that the server allocates the usual state
// for it.
func (c *crowd) use(ctx context.Context, i int, o *Options) error {
	if _, _, err := c.idle[i].PeekTube(ctx, o.Tube, client.StateReady); err != nil && !errors.Is(err, client.ErrNotFound) {
		return fmt.Errorf("idle connection: %w", err)
	}
	return nil
}

// occupy puts a job into each tube that the load does not use.
func occupy(ctx context.Context, o *Options) error {
	pool, err := client.NewPool(o.Addr, &client.Options{MaxIdle: dialers})
	if err != nil {
		return err
	}
	defer pool.Close()
	body := newBody(o.BodySize)
	return prepareAll(ctx, o.Occupied, "tubes got their job", func(ctx context.Context, i int) error {
		_, err := pool.Put(ctx, client.NewJob{Tube: fmt.Sprintf("%s-occupied-%d", o.Tube, i), Body: body, Priority: new(uint32(putPri)), TTR: putTTR * time.Second})
		return err
	})
}
