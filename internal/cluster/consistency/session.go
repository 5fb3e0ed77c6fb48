package consistency

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// A step is what a member is asked to do in a check.
type step string

const (
	stepBegin step = "begin" // Due, or 0. The answer has From and Due
	stepSums  step = "sums"  // From, Until or 0. The answer has Until when the walk is over, and Sums when the member has the entry Until
	stepItems step = "items" // From, Until, Bucket. The answer has Items
	stepEnd   step = "end"
)

// A Request is one step of the check that Name names.
type Request struct {
	Name   uint64 `json:"name"`
	Step   step   `json:"step"`
	Due    int64  `json:"due,omitempty"`
	From   uint64 `json:"from,omitempty"`
	Until  uint64 `json:"until,omitempty"`
	Bucket int    `json:"bucket,omitempty"`
}

// A Reply is what a member answers to a step.
type Reply struct {
	Due     int64  `json:"due,omitempty"`
	From    uint64 `json:"from,omitempty"`
	Applied uint64 `json:"applied,omitempty"`
	Until   uint64 `json:"until,omitempty"`
	Sums    *Sums  `json:"sums,omitempty"`
	Items   []Item `json:"items,omitempty"`
}

// Sums are what one member has, without what has changed meanwhile.
type Sums struct {
	Jobs    uint64   `json:"jobs"`    // that are compared
	Changed uint64   `json:"changed"` // jobs, pauses and policies that are left out
	Buckets []uint64 `json:"buckets"` // sums of the hashes of those whose key modulo buckets is the index
}

// buckets is how many sums there are.
const buckets = 4096

// A Session has the check in which a member takes part, if there is one. The zero value
// has none. Its methods may be called from any goroutine.
type Session struct {
	mu     sync.Mutex
	name   uint64
	check  *check
	giveUp *time.Timer
}

// Do does a step.
func (s *Session) Do(m Member, r *Request) (reply Reply, err error) {
	if r == nil {
		return reply, errors.New("a step of a consistency check is missing")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Step == stepBegin {
		return s.begin(m, r)
	}
	c := s.check
	if c == nil || s.name != r.Name {
		return reply, errOver
	}
	switch r.Step {
	case stepSums:
		c.walk(r.From)
		if reply.Applied, reply.Until, err = c.state(); err == nil && r.Until != 0 {
			reply.Sums, err = c.sums(r.From, r.Until)
		}
	case stepItems:
		reply.Items, err = c.in(r.From, r.Until, r.Bucket)
	case stepEnd:
		s.end()
	default:
		err = fmt.Errorf("there is no step %q of a consistency check: the members are of different versions", r.Step)
	}
	return reply, err
}

func (s *Session) begin(m Member, r *Request) (reply Reply, err error) {
	s.end()
	c, err := begin(m, r.Due)
	if err != nil {
		return reply, err
	}
	s.name, s.check = r.Name, c
	s.giveUp = time.AfterFunc(TimeLimit, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.check == c {
			s.end()
		}
	})
	return Reply{Due: c.due, From: c.from}, nil
}

// end ends the check that is under way.
func (s *Session) end() {
	if s.check != nil {
		s.giveUp.Stop()
		s.check.end()
		s.check = nil
	}
}
