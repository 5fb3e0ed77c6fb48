package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/cluster"
)

// The steps of a comparison at one member; see cluster.Census. Each answer is a CensusReply.
const (
	censusBegin = "begin" // Due, or 0. The answer has From and Due
	censusWalk  = "walk"  // From
	censusSums  = "sums"  // From, Until. The answer has Sums, or neither these nor an error: ask again
	censusOf    = "of"    // From, Until, Bucket. The answer has In
	censusEnd   = "end"
	censusState = "state" // the answer has Until when the walk is over
)

// A CensusRequest is one step of a comparison that Name names.
type CensusRequest struct {
	Name   uint64 `json:"name"`
	Step   string `json:"step"`
	Due    int64  `json:"due,omitempty"`
	From   uint64 `json:"from,omitempty"`
	Until  uint64 `json:"until,omitempty"`
	Bucket int    `json:"bucket,omitempty"`
}

// A CensusReply is what a member answers to a step.
type CensusReply struct {
	Due     int64               `json:"due,omitempty"`
	From    uint64              `json:"from,omitempty"`
	Applied uint64              `json:"applied,omitempty"` // 0: a version that does not say it
	Until   uint64              `json:"until,omitempty"`
	Sums    *cluster.CensusSums `json:"sums,omitempty"`
	In      []cluster.Counted   `json:"in,omitempty"`
}

// censusSilence is how long nobody may ask before a comparison is given up.
const censusSilence = time.Minute

// A censusDesk has the comparison in which this member takes part, if there is one.
type censusDesk struct {
	mu      sync.Mutex
	name    uint64
	census  *cluster.Census
	silence *time.Timer
}

// ask does a step.
func (d *censusDesk) ask(m Member, r *CensusRequest) (reply CensusReply, err error) {
	if r == nil {
		return reply, errors.New("a step of a comparison is missing")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Step == censusBegin {
		return d.begin(m, r)
	}
	c := d.census
	if c == nil || d.name != r.Name {
		return reply, errors.New("another comparison was begun, or this one was given up")
	}
	d.silence.Reset(censusSilence)
	reply.Applied = c.Applied()
	switch r.Step {
	case censusWalk:
		c.Walk(r.From)
	case censusState:
		reply.Until, _, err = c.Walked()
	case censusSums:
		sums, ok, sumsErr := c.Sums(r.From, r.Until)
		if err = sumsErr; ok {
			reply.Sums = &sums
		}
	case censusOf:
		reply.In, err = c.Of(r.From, r.Until, r.Bucket)
	case censusEnd:
		d.end(m)
	default:
		err = fmt.Errorf("there is no step %q of a comparison: the members are of different versions", r.Step)
	}
	return reply, err
}

func (d *censusDesk) begin(m Member, r *CensusRequest) (reply CensusReply, err error) {
	d.end(m)
	c, from, err := m.BeginCensus(r.Due)
	if err != nil {
		return reply, err
	}
	d.name, d.census = r.Name, c
	d.silence = time.AfterFunc(censusSilence, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.census == c {
			d.end(m)
		}
	})
	return CensusReply{Due: c.Due(), From: from}, nil
}

// end ends the comparison that is under way.
func (d *censusDesk) end(m Member) {
	if d.census != nil {
		d.silence.Stop()
		m.EndCensus(d.census)
		d.census = nil
	}
}

// takeCensus answers for this member, or passes the step on to the one that is meant.
func (c *Control) takeCensus(ctx context.Context, r Request) (any, error) {
	if r.ID == c.Directory.ID {
		return c.census.ask(c.Member, r.Census)
	}
	if r.PassedOn {
		return nil, fmt.Errorf("this is member %d, and not %d", c.Directory.ID, r.ID)
	}
	return c.passOn(ctx, r.ID, r)
}
