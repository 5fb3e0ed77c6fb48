package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/bench"
	"github.com/beanpole-mq/beanpole/client"
)

// A loss is a way of stopping the leader and restarting it.
type loss struct {
	name     string
	flags    []string // flags of all members
	follower bool     // whether the client is connected to a follower instead of the leader
	take     func(*process) error
	giveBack func(*process, context.Context) error
}

func losses() []loss {
	crash := func(p *process) error {
		p.Kill()
		return nil
	}
	freeze := func(p *process) error { return syscall.Kill(p.PID, syscall.SIGSTOP) }
	thaw := func(p *process, _ context.Context) error { return syscall.Kill(p.PID, syscall.SIGCONT) }
	return []loss{
		{"killed", nil, false, crash, (*process).start},
		{"killed, without fast failover", []string{"--cluster-fast-failover=false"}, false, crash, (*process).start},
		{"frozen, client at a follower", nil, true, freeze, thaw},
	}
}

// measureGaps stops the leader repeatedly, and writes the times without an answer. Each
// kind of loss has its own cluster.
func (opt *options) measureGaps(ctx context.Context, w io.Writer, dir string) error {
	for i, l := range losses() {
		c, err := startCluster(ctx, opt.program, filepath.Join(dir, fmt.Sprint("gaps", i)), l.flags...)
		if err != nil {
			return err
		}
		for range opt.gaps {
			var gap time.Duration
			if gap, err = opt.measureGap(ctx, c, &l); err != nil {
				break
			}
			bench.WriteResult(w, "Gap/leader="+l.name, []bench.Measurement{{Value: float64(gap), Unit: "gap-ns"}})
		}
		c.stop()
		if err != nil {
			return fmt.Errorf("the leader is %s: %w", l.name, err)
		}
	}
	return nil
}

// grownUp is the minimum age of the members when the leader stops, because members do not
// vote in their first 0.6 s.
const grownUp = 2 * time.Second

// measureGap stops the leader once, and restarts it.
func (opt *options) measureGap(ctx context.Context, c *cluster, l *loss) (gap time.Duration, err error) {
	time.Sleep(grownUp)
	leader, _ := c.look(ctx)
	if leader < 0 {
		return 0, errors.New("the cluster has no leader")
	}
	s := seeker{cluster: c, victim: leader, next: leader, job: client.NewJob{Body: make([]byte, opt.body)}}
	if l.follower {
		s.turnAway()
	}
	defer s.hangUp()
	for range 10 {
		if err := s.put(ctx); err != nil {
			return 0, err
		}
	}
	s.lost = 0 // a follower might not have had a leader yet
	taken := make(chan error, 1)
	go func() { taken <- l.take(c.members[leader]) }()
	last := time.Now()
	for s.lost == 0 {
		if err := s.put(ctx); err != nil {
			return 0, errors.Join(err, <-taken)
		}
		now := time.Now()
		gap, last = max(gap, now.Sub(last)), now
	}
	if err := <-taken; err != nil {
		return 0, err
	}
	if err := l.giveBack(c.members[leader], ctx); err != nil {
		return 0, err
	}
	return gap, c.settle(ctx, members)
}

// A seeker is a client that switches to another member automatically, but never back to
// the victim.
type seeker struct {
	*cluster
	victim int // the member that is stopped
	next   int // index of the next address to try
	job    client.NewJob
	lost   int // number of lost connections
	conn   *client.Conn
}

// put puts one job on any member that accepts it.
func (s *seeker) put(ctx context.Context) error {
	for ctx.Err() == nil {
		if s.conn == nil {
			conn, err := client.Dial(ctx, s.members[s.next].Addr, &client.Options{Timeout: client.Never, Reconnect: client.Never})
			if err != nil {
				s.turnAway()
				time.Sleep(time.Millisecond)
				continue
			}
			s.conn = conn
		}
		if _, err := s.conn.Put(ctx, s.job); err == nil {
			return nil
		}
		s.hangUp()
		s.lost++
		s.turnAway()
	}
	return ctx.Err()
}

// turnAway selects another member.
func (s *seeker) turnAway() {
	s.next = (s.next + 1) % members
	if s.next == s.victim {
		s.next = (s.next + 1) % members
	}
}

func (s *seeker) hangUp() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}
