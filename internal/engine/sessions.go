package engine

// SessionStats is what there is to tell of a session.
type SessionStats struct {
	ID       uint64 // no other session has it, before or after; from 1
	Using    string // name of a tube
	Watching Names
	Held     int   // jobs that it has reserved
	Waiting  bool  // in a reserve
	Waited   int64 // ns since that began
	Producer bool  // it has put
	Worker   bool  // it has reserved
}

// Sessions returns up to n sessions and where the next begin; 0 is the beginning,
// and then the end. That is in no particular order, but one that stays: who goes from
// slice to slice sees each session exactly once that is there all the time. It looks
// at n places at most, some of which may be free.
func (e *Engine) Sessions(from, n int) (found []*Session, next int) {
	for ; n > 0 && from < len(e.sessions); n-- {
		e.work++
		if s := e.sessions[from]; s != nil && !s.closed {
			found = append(found, s)
		}
		from++
	}
	if from >= len(e.sessions) {
		return found, 0
	}
	return found, from
}

// Waiter returns what the session was opened with.
func (s *Session) Waiter() Waiter { return s.waiter }

// SessionStats returns what there is to tell of a session.
func (e *Engine) SessionStats(now int64, s *Session) SessionStats {
	e.work += len(s.watches) / looksPerUnit
	st := SessionStats{
		ID:       s.id,
		Using:    s.use.name,
		Watching: s.WatchedNames(),
		Held:     s.reserved.n,
		Waiting:  s.waiting || s.searching,
		Producer: s.producer,
		Worker:   s.worker,
	}
	if st.Waiting {
		st.Waited = now - s.waitBegan
	}
	return st
}

// HeldJobs returns the ids of up to n jobs that the session has reserved, the oldest
// reservation first.
func (e *Engine) HeldJobs(s *Session, n int) (ids []uint64) {
	for i := s.held.first; i != none && len(ids) < n; {
		j := e.jobs.at(i)
		ids = append(ids, j.id)
		i = j.heldAfter
		e.work++
	}
	return ids
}
