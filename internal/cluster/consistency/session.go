package consistency

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// A step is an operation of a member in a check.
type step string

const (
	stepBegin step = "begin" // takes Due, or 0; returns From and Due
	stepSums  step = "sums"  // takes From, and Until or 0; returns Until when the walk is complete, and Sums when the member has applied the entry Until
	stepEnd   step = "end"
)

// A Request is one step of the check with the given Name.
type Request struct {
	Name  uint64 `json:"name"`
	Step  step   `json:"step"`
	Due   int64  `json:"due,omitempty"`
	From  uint64 `json:"from,omitempty"`
	Until uint64 `json:"until,omitempty"`
}

// A Reply is a member's reply to a step.
type Reply struct {
	Due     int64  `json:"due,omitempty"`
	From    uint64 `json:"from,omitempty"`
	Applied uint64 `json:"applied,omitempty"`
	Until   uint64 `json:"until,omitempty"`
	Sums    *Sums  `json:"sums,omitempty"`
}

// Sums summarize a member's items that were not changed during the check.
type Sums struct {
	Jobs    uint64 `json:"jobs"`    // number of compared jobs
	Changed uint64 `json:"changed"` // number of jobs, pauses and named texts that are not compared
	Hash    uint64 `json:"hash"`    // sum of the hashes of the compared items
}

// A Session contains the check in which a member takes part, if any. The zero value
// contains no check. Any goroutine can call its methods.
type Session struct {
	mu     sync.Mutex
	name   uint64
	check  *check
	giveUp *time.Timer
}

// Do performs a step.
func (s *Session) Do(m Replica, r *Request) (reply Reply, err error) {
	if r == nil {
		return reply, errors.New("invalid request: the step of the consistency check is missing")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Step == stepBegin {
		return s.start(m, r)
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
	case stepEnd:
		s.end()
	default:
		err = fmt.Errorf("unknown step %q of a consistency check: the members have different versions", r.Step)
	}
	return reply, err
}

func (s *Session) start(m Replica, r *Request) (reply Reply, err error) {
	s.end()
	c, err := start(m, r.Due)
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

// end ends the check in progress.
func (s *Session) end() {
	if s.check != nil {
		s.giveUp.Stop()
		s.check.end()
		s.check = nil
	}
}
