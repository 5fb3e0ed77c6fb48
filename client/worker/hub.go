package worker

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/beanpole-mq/beanpole/client"
)

// maxDeletes is how many deletes are sent at once.
const maxDeletes = 100

// A hub takes jobs of one server for all slots: as many at once as there are slots that
// wait, and no more, for their time to run begins at once. With the same round trip it
// deletes those that are done.
//
// One slot at a time leads: it asks for all that wait. In the protocol a job belongs to
// its connection, and a reserve that waits blocks one. So the leader waits on a
// connection that holds no job. On one that holds jobs it only asks for what is there; if
// that is nothing, it goes on with another connection. A slot whose job is done while the
// leader waits sends its delete itself.
//
// With a server that knows no batches each slot asks for itself, on a connection of its
// own.
type hub struct {
	// Static.
	addr  string
	opt   *client.Options
	tubes []string

	mu      sync.Mutex
	seats   int     // that are not closed
	waiting []*seat // that want a job, the first come first
	leader  *seat   // nil: none
	blocked bool    // it may wait for long
	plain   bool    // the server knows no batches
	lines   []*line
}

// A line is a connection.
type line struct {
	conn    *client.Conn
	held    int  // jobs that slots have of it, their deletes under way included
	retired bool // it holds a job that is given up: no more come from it
}

// A seat is the place of a slot in a hub. The hub's mutex guards it; the slot waits for
// ch while others change it.
type seat struct {
	*hub
	ch     chan struct{}
	line   *line // of the job that it has; nil: none. Kept if the server knows no batches
	job    *client.Job
	id     uint64 // of the job that it is done with
	del    deletion
	err    error // of the delete
	closed bool
}

// A deletion is how far a seat is with its delete.
type deletion uint8

const (
	noDelete deletion = iota
	unsent
	sent
	answered // its slot does not know yet
)

// reserve waits for a job.
func (s *seat) reserve(ctx context.Context) (*client.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(ctx, nil)
}

// next deletes a job and waits for another. It calls deleted with what became of the
// delete before it waits; the end of ctx ends only the wait.
func (s *seat) next(ctx context.Context, job *client.Job, deleted func(error)) (*client.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id, s.del = job.ID, unsent
	return s.take(ctx, deleted)
}

// take waits for a job, after the delete.
func (s *seat) take(ctx context.Context, deleted func(error)) (*client.Job, error) {
	s.waiting = append(s.waiting, s)
	defer s.leave()
	for {
		switch {
		case s.del == answered: // before all others, so that no delete is left untold
			s.del = noDelete
			err := s.err
			s.mu.Unlock()
			deleted(err)
			s.mu.Lock()
		case s.plain:
			return s.alone(ctx, deleted)
		case s.job != nil:
			job := s.job
			s.job = nil
			return job, nil
		case s.del == unsent && (s.blocked || ctx.Err() != nil || s.line.retired):
			s.deleteNow(ctx)
		case s.del == noDelete && ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case s.del != sent && s.leader == nil:
			if err := s.lead(ctx, deleted); err != nil {
				return nil, err
			}
		default:
			s.mu.Unlock()
			select {
			case <-s.ch:
			case <-ctx.Done():
				if s.isSent() {
					<-s.ch
				}
			}
			s.mu.Lock()
		}
	}
}

// alone is take with a server that knows no batches.
func (s *seat) alone(ctx context.Context, deleted func(error)) (*client.Job, error) {
	var ids []uint64
	if s.del == unsent {
		ids, s.del = []uint64{s.id}, noDelete
	}
	if s.line == nil {
		l, err := s.lineFor(ctx)
		if err != nil {
			return nil, err
		}
		l.held++ // so that nobody takes it for idle
		s.line = l
	}
	conn := s.line.conn
	s.mu.Unlock()
	jobs, err := conn.DeleteAndReserve(ctx, ids, 1, client.Never, func(_ int, err error) { deleted(err) })
	s.mu.Lock()
	if len(jobs) == 1 {
		return jobs[0], nil
	}
	return nil, err
}

// isSent reports whether another has sent the delete of the seat, and will wake it.
func (s *seat) isSent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.del == sent
}

// leave takes the seat from those that wait, and lets another lead if nobody does: one
// with a delete before others.
func (s *seat) leave() {
	s.waiting = slices.DeleteFunc(s.waiting, func(o *seat) bool { return o == s })
	if s.leader != nil || len(s.waiting) == 0 {
		return
	}
	next := s.waiting[0]
	for _, o := range s.waiting {
		if o.del == unsent {
			next = o
			break
		}
	}
	next.wake()
}

func (s *seat) wake() {
	select {
	case s.ch <- struct{}{}:
	default:
	}
}

// deletesOf returns the seats with deletes for a line, this one before others, and what
// they delete. These deletes are under way from now on.
func (s *seat) deletesOf(l *line) (of []*seat, ids []uint64) {
	i := slices.Index(s.waiting, s)
	copy(s.waiting[1:], s.waiting[:i])
	s.waiting[0] = s
	for _, o := range s.waiting {
		if o.del == unsent && o.line == l && len(of) < maxDeletes {
			of, ids = append(of, o), append(ids, o.id)
			o.del = sent
		}
	}
	return of, ids
}

// over notes how a delete has ended.
func (s *seat) over(err error) {
	s.del, s.err = answered, err
	s.drop()
	s.wake()
}

// drop notes that the slot has no job of its line any more. One that is retired is closed
// with the last.
func (s *seat) drop() {
	l := s.line
	if s.line = nil; l == nil {
		return
	}
	if l.held--; l.held == 0 && l.retired {
		l.conn.Close()
		s.lines = slices.DeleteFunc(s.lines, func(o *line) bool { return o == l })
	}
}

// deleteNow sends the deletes of the seat's line, without a reserve.
func (s *seat) deleteNow(ctx context.Context) {
	l := s.line
	of, ids := s.deletesOf(l)
	s.mu.Unlock()
	err := l.conn.DeleteMany(context.WithoutCancel(ctx), ids)
	s.mu.Lock()
	var each *client.BatchError
	for i, o := range of {
		if errors.As(err, &each) {
			o.over(each.Errs[i])
		} else {
			o.over(err)
		}
	}
}

// lead asks for jobs for all that wait.
func (s *seat) lead(ctx context.Context, deleted func(error)) error {
	s.leader = s
	l, err := s.lineFor(ctx)
	if err != nil || s.plain {
		s.unlead()
		return err
	}
	of, ids := s.deletesOf(l)
	n := len(of)
	if s.del != sent {
		n++
	}
	for _, o := range s.waiting {
		if o != s && o.del != unsent && o.del != sent && o.job == nil {
			n++
		}
	}
	wait := client.Never
	if l.held > len(of) {
		wait = 0
	} else {
		s.blocked = true
		for _, o := range s.waiting {
			if o.del == unsent && o.line != l {
				o.wake()
			}
		}
	}
	l.held++ // so that nobody else takes it for idle
	s.mu.Unlock()
	jobs, err := l.conn.DeleteAndReserve(ctx, ids, n, wait, func(i int, err error) {
		s.mu.Lock()
		of[i].over(err)
		own := of[i] == s
		if own {
			s.del = noDelete
		}
		s.mu.Unlock()
		if own {
			deleted(err)
		}
	})
	s.mu.Lock()
	l.held--
	s.unlead()
	s.handOut(ctx, l, jobs)
	if errors.Is(err, client.ErrTimedOut) || errors.Is(err, client.ErrDeadlineSoon) {
		return nil // it will look elsewhere
	}
	return err
}

func (s *seat) unlead() {
	if s.leader == s {
		s.leader, s.blocked = nil, false
	}
}

// handOut gives jobs to the leader and to those that wait. If those have ceased to, the
// worker ends: the jobs are given back.
func (s *seat) handOut(ctx context.Context, l *line, jobs []*client.Job) {
	to := s.waiting
	for _, job := range jobs {
		for len(to) > 0 && (to[0].job != nil || to[0].del == unsent || to[0].del == sent) {
			to = to[1:]
		}
		l.held++
		if len(to) == 0 {
			left := &seat{hub: s.hub, line: l}
			s.mu.Unlock()
			err := job.Release(context.WithoutCancel(ctx), 0)
			s.mu.Lock()
			l.retired = l.retired || err != nil
			left.drop()
			continue
		}
		to[0].job, to[0].line = job, l
		to[0].wake()
	}
}

// lineFor returns the connection on which the seat asks: that of its job, or one that
// holds none.
func (s *seat) lineFor(ctx context.Context) (*line, error) {
	if s.del == unsent {
		return s.line, nil
	}
	for _, l := range s.lines {
		if l.held == 0 && !l.retired {
			return l, nil
		}
	}
	s.mu.Unlock()
	conn, err := client.Dial(ctx, s.addr, s.opt)
	var caps []string
	if err == nil {
		if err = conn.WatchOnly(ctx, s.tubes...); err == nil {
			caps, err = conn.Caps(ctx)
		}
		if err != nil {
			conn.Close()
		}
	}
	s.mu.Lock()
	switch {
	case err != nil:
		return nil, err
	case s.seats == 0:
		conn.Close()
		return nil, client.ErrClosed
	}
	// Nobody has a job yet.
	if len(s.lines) == 0 && !slices.Contains(caps, "reserve-batch") {
		s.plain = true
		for _, o := range s.waiting {
			o.wake()
		}
	}
	l := &line{conn: conn}
	s.lines = append(s.lines, l)
	return l, nil
}

// finished is called for a job that has ended otherwise: it is released, buried or lost.
func (s *seat) finished() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.plain {
		s.drop()
	}
}

// giveUp is finished for a job that is still reserved. Its connection is closed as soon
// as no other job needs it, so that the server makes it ready again.
func (s *seat) giveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line != nil {
		s.line.retired = true
		s.drop()
	}
}

// close closes all connections when all seats are closed. It may be called at any time.
func (s *seat) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	if s.seats--; s.seats > 0 {
		return
	}
	for _, l := range s.lines {
		l.conn.Close()
	}
	s.lines = nil
}
