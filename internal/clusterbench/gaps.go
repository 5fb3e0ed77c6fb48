package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/beanpole-mq/beanpole/internal/bench"
	"github.com/beanpole-mq/beanpole/internal/load"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// measureGaps kills the leader again and again, and prints for how long a client had no answer.
func (opt *options) measureGaps(ctx context.Context, w io.Writer, c *cluster) error {
	var gaps []float64
	for range opt.kills {
		gap, err := opt.measureGap(ctx, c)
		if err != nil {
			return err
		}
		gaps = append(gaps, float64(gap))
	}
	s := bench.NewSpread(gaps)
	fmt.Fprintf(w, "The leader killed %d times: a client that looks for the new one has no answer for %s (median), %s at most.\n",
		opt.kills, load.Nanoseconds.Format(s.Median), load.Nanoseconds.Format(s.Max))
	return nil
}

// grownUp is how old members are at least when the leader is killed: in its first 0.6 s none votes.
const grownUp = 2 * time.Second

// measureGap kills the leader once, and starts it again.
func (opt *options) measureGap(ctx context.Context, c *cluster) (gap time.Duration, err error) {
	leader, _ := c.look(ctx)
	if leader < 0 {
		return 0, fmt.Errorf("the cluster has no leader")
	}
	time.Sleep(grownUp)
	s := seeker{cluster: c, next: leader, job: wire.AppendPut(nil, 0, 0, 60, make([]byte, opt.body))}
	for range 10 {
		if err := s.put(ctx); err != nil {
			return 0, err
		}
	}
	killed := make(chan error, 1)
	go func() { killed <- c.members[leader].Kill() }()
	last := time.Now()
	for s.lost == 0 {
		if err := s.put(ctx); err != nil {
			return 0, err
		}
		now := time.Now()
		gap, last = max(gap, now.Sub(last)), now
	}
	s.hangUp()
	if err := <-killed; err != nil {
		return 0, err
	}
	if err := c.members[leader].start(ctx); err != nil {
		return 0, err
	}
	return gap, c.settle(ctx, members)
}

// A seeker is a client that looks for a server by itself.
type seeker struct {
	*cluster
	next int // the member to try
	job  []byte
	lost int // how many connections
	d    *load.Dialog
}

// put puts one job, wherever that works.
func (s *seeker) put(ctx context.Context) error {
	for ctx.Err() == nil {
		if s.d == nil {
			d, err := load.Dial(ctx, s.members[s.next].Addr)
			if err != nil {
				s.next = (s.next + 1) % members
				time.Sleep(time.Millisecond)
				continue
			}
			s.d = d
		}
		if _, err := s.d.Do(s.job, wire.Inserted); err == nil {
			return nil
		}
		s.hangUp()
		s.lost++
		s.next = (s.next + 1) % members
	}
	return ctx.Err()
}

func (s *seeker) hangUp() {
	if s.d != nil {
		s.d.Close()
		s.d = nil
	}
}
