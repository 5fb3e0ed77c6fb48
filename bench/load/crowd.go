package load

import (
	"context"
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A crowd burdens a server without taking part in the load: tubes that have a job,
// silent connections, waiting workers. The zero value is empty.
type crowd struct {
	idle    []*Dialog
	members int
	before  Usage // of the server, before the crowd came
	with    Usage // and when it was there
}

// CrowdUsage is the memory that the server took for a crowd before the load began.
type CrowdUsage struct {
	// Members are tubes and connections; with workers, their producers count too.
	Members int `json:"members"`

	RSSBefore int64 `json:"rss_before_bytes"`
	RSSWith   int64 `json:"rss_with_bytes"`

	// RSSEach is what one member added, in the mean; negative if the server gave
	// memory back meanwhile.
	RSSEach float64 `json:"rss_each_bytes"`
}

// gather occupies the tubes and opens the idle connections. Workers come later,
// with the load. The crowd is to be dispersed, also after an error.
func (c *crowd) gather(ctx context.Context, o *Options) error {
	c.before = UsageOf(o.PID)
	if o.Occupied > 0 {
		if err := occupy(ctx, o); err != nil {
			return err
		}
	}
	if err := c.openIdle(ctx, o); err != nil {
		return err
	}
	c.grow(o, o.Occupied+o.Idle)
	return nil
}

// grow counts n new members, and notes how much memory the server takes now.
func (c *crowd) grow(o *Options, n int) {
	if n > 0 {
		c.members += n
		c.with = UsageOf(o.PID)
	}
}

// usage returns nil if there is no crowd, or if the server's memory is unknown.
func (c *crowd) usage() *CrowdUsage {
	if c.members == 0 || c.before.RSS == 0 || c.with.RSS == 0 {
		return nil
	}
	return &CrowdUsage{
		Members:   c.members,
		RSSBefore: c.before.RSS,
		RSSWith:   c.with.RSS,
		RSSEach:   float64(c.with.RSS-c.before.RSS) / float64(c.members),
	}
}

func (c *crowd) disperse() {
	for _, d := range c.idle {
		if d != nil {
			d.Close()
		}
	}
}

// openIdle opens the silent connections. Each sends one command, so that the server has
// made for it what it makes for any connection.
func (c *crowd) openIdle(ctx context.Context, o *Options) error {
	c.idle = make([]*Dialog, max(o.Idle, 0))
	return o.prepareAll(ctx, len(c.idle), "idle connections are open", func(ctx context.Context, i int) (err error) {
		if c.idle[i], err = Dial(ctx, o.Addr); err != nil {
			return err
		}
		return c.use(i, o)
	})
}

// verify checks that the idle connections still work: a server that has closed them had
// an easier load.
func (c *crowd) verify(ctx context.Context, o *Options) error {
	return o.prepareAll(ctx, len(c.idle), "idle connections have stayed open", func(ctx context.Context, i int) error {
		c.idle[i].attach(ctx)
		return c.use(i, o)
	})
}

// use sends a command on an idle connection, which is then no longer attached.
func (c *crowd) use(i int, o *Options) error {
	defer c.idle[i].detach()
	if _, err := c.idle[i].Do(wire.AppendUse(nil, o.Tube), wire.Using); err != nil {
		return fmt.Errorf("idle connection: %w", err)
	}
	return nil
}

// occupy puts a job into each of the tubes that the load does not use, on one
// connection.
func occupy(ctx context.Context, o *Options) error {
	body := newBody(o.BodySize)
	replies := 0
	return o.prepare(ctx, func(ctx context.Context) error {
		d, err := Dial(ctx, o.Addr)
		if err != nil {
			return err
		}
		defer d.Close()
		return d.Pipeline(2*o.Occupied, func(out []byte, i int) []byte {
			if i%2 == 0 {
				return wire.AppendUse(out, fmt.Sprintf("%s-occupied-%d", o.Tube, i/2))
			}
			return wire.AppendPut(out, putPri, 0, putTTR, body)
		}, func(*wire.Reply) { replies++ }, wire.Using, wire.Inserted)
	}, func() string { return fmt.Sprintf("%d of %d tubes got their job", replies/2, o.Occupied) })
}
