package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// ErrTooSlow is wrapped by the error of a run whose crowd did not come together
// within Options.SetupLimit.
var ErrTooSlow = errors.New("the server is too slow for this crowd")

const (
	defaultSetupLimit = 30 * time.Second
	waitingPoll       = 5 * time.Millisecond
	occupyBatch       = 64 // tubes that are occupied in one round trip
	ownFiles          = 64 // that this process has open besides its connections
)

// A crowd burdens a server without taking part in the load: tubes that have a job,
// silent connections, waiting workers. A nil crowd is empty.
type crowd struct {
	pid     int
	members int
	rss     [2]int64 // of the server, before the crowd came and with it; 0 if unknown
	idle    []net.Conn
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
func gather(ctx context.Context, o *Options) (*crowd, error) {
	c := &crowd{pid: o.PID}
	c.rss[0] = readUsage(c.pid).rss
	if o.Occupied > 0 {
		if err := occupy(ctx, o); err != nil {
			return c, err
		}
	}
	if err := c.openIdle(ctx, o); err != nil {
		return c, err
	}
	c.count(o.Occupied + o.Idle)
	return c, nil
}

// count says that the crowd has grown by n.
func (c *crowd) count(n int) {
	if n > 0 {
		c.members += n
		c.rss[1] = readUsage(c.pid).rss
	}
}

// usage returns nil if there is no crowd or nothing is known of it.
func (c *crowd) usage() *CrowdUsage {
	if c == nil || c.members == 0 || c.rss[0] == 0 || c.rss[1] == 0 {
		return nil
	}
	return &CrowdUsage{
		Members:   c.members,
		RSSBefore: c.rss[0],
		RSSWith:   c.rss[1],
		RSSEach:   float64(c.rss[1]-c.rss[0]) / float64(c.members),
	}
}

func (c *crowd) disperse() {
	for _, nc := range c.idle {
		if nc != nil {
			nc.Close()
		}
	}
}

// openIdle opens the silent connections. Each sends one command, so that the server has
// made for it what it makes for any connection.
func (c *crowd) openIdle(ctx context.Context, o *Options) error {
	c.idle = make([]net.Conn, max(o.Idle, 0))
	return inParallel(ctx, len(c.idle), func(ctx context.Context, i int) (err error) {
		if c.idle[i], err = dialServer(ctx, o.Addr); err != nil {
			return err
		}
		return useTube(ctx, c.idle[i], o)
	})
}

// verify checks that the idle connections still work: a server that has closed them had
// an easier load.
func (c *crowd) verify(ctx context.Context, o *Options) error {
	return inParallel(ctx, len(c.idle), func(ctx context.Context, i int) error {
		return useTube(ctx, c.idle[i], o)
	})
}

func useTube(ctx context.Context, nc net.Conn, o *Options) error {
	err := within(ctx, nc, dialTimeout, func(d *Dialog) error {
		_, err := d.Do(wire.AppendUse(nil, o.tube(0)), wire.Using)
		return err
	})
	if err != nil {
		return fmt.Errorf("idle connection: %w", err)
	}
	return nil
}

// occupy puts a job into each of the tubes that the load does not use, on one
// connection.
func occupy(ctx context.Context, o *Options) error {
	body := newBody(o.BodySize)
	done := 0
	err := withDialog(ctx, o.Addr, o.SetupLimit, func(d *Dialog) error {
		for done < o.Occupied {
			n := min(occupyBatch, o.Occupied-done)
			var out []byte
			for i := range n {
				out = wire.AppendUse(out, fmt.Sprintf("%s-occupied-%d", o.Prefix, done+i))
				out = wire.AppendPut(out, putPri, 0, putTTR, body)
			}
			if err := d.Exchange(out, 2*n, nil, wire.Using, wire.Inserted); err != nil {
				return err
			}
			done += n
		}
		return nil
	})
	return o.setupError(err, fmt.Sprintf("%d of %d tubes got their job", done, o.Occupied))
}

// awaitWorkers returns when all workers of a Wake wait, so that each put wakes one.
func awaitWorkers(ctx context.Context, o *Options) error {
	want := max(o.Workers, 1)
	waiting := 0
	err := withDialog(ctx, o.Addr, o.SetupLimit, func(d *Dialog) error {
		for i := 0; i < o.Tubes; {
			n, err := d.waiting(o.tube(i))
			if err != nil {
				return err
			}
			if waiting = n; n >= want {
				i++
				continue
			}
			time.Sleep(waitingPoll)
		}
		return nil
	})
	return o.setupError(err, fmt.Sprintf("%d of %d workers wait on a tube", waiting, want))
}

// waiting returns how many connections wait for a job of the tube.
func (d *Dialog) waiting(tube string) (int, error) {
	r, err := d.Do(wire.AppendStatsTubeCommand(nil, tube), wire.OK)
	if err != nil {
		return 0, err
	}
	stats, err := wire.ParseDict(r.Body)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(stats["current-waiting"])
}

func (o *Options) setupError(err error, progress string) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("load: %s in %v: %w", progress, o.SetupLimit, ErrTooSlow)
	case err != nil:
		return fmt.Errorf("%s: %w", progress, err)
	}
	return nil
}

// files is the number of files that a run has open at a time.
func (o *Options) files() int {
	n := o.Connections + o.Idle + ownFiles
	if o.Mix == Wake {
		n += max(o.Workers, o.Connections)
	}
	return n
}

// checkFiles returns an error if this process may not have n files open. (It may
// have all that the system allows it: Go raises its limit when it starts.)
func checkFiles(n int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	if uint64(n) > uint64(limit.Cur) {
		return fmt.Errorf("load: %d open files are needed and %d are allowed (see: ulimit -Hn)", n, limit.Cur)
	}
	return nil
}
