package engine

// SessionStats contains the state of a session.
type SessionStats struct {
	ID       uint64 // unique, from 1
	Using    string // name of a tube
	Watching Names
	Held     int   // number of reserved jobs
	HeldFor  int64 // ns since the oldest reservation; 0 if there is none
	Waiting  bool  // in a reserve
	Waited   int64 // ns since the wait started
	Producer bool  // has put a job
	Worker   bool  // has reserved a job
}

// Sessions returns up to n sessions and the position of the next ones. from is 0 for the
// start; next is 0 at the end. The order is arbitrary but constant: successive calls
// return each session that stays open exactly once. Each call examines at most n
// positions, some of which can be free.
func (e *Engine) Sessions(from, n int) (found []*Session, next int) {
	for ; n > 0 && from < len(e.sessions); n-- {
		e.turnWork++
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

// ID returns the id of the session, as in SessionStats.
func (s *Session) ID() uint64 { return s.id }

// Waiter returns the Waiter that was passed to Open.
func (s *Session) Waiter() Waiter { return s.waiter }

// SessionStats contains the state of a session.
func (e *Engine) SessionStats(now int64, s *Session) SessionStats {
	e.turnWork += len(s.watches) / stepsPerUnit
	st := SessionStats{
		ID:       s.id,
		Using:    s.use.name,
		Watching: s.WatchedNames(),
		Held:     s.reserved.n,
		Waiting:  s.waiting,
		Producer: s.producer,
		Worker:   s.worker,
	}
	if st.Waiting {
		st.Waited = now - s.waitBegan
	}
	if s.held.first != none {
		st.HeldFor = now - e.jobs.heldAt(s.held.first).when
	}
	return st
}

// A Hold is a job that a session has reserved.
type Hold struct {
	ID   uint64
	Tube string
	For  int64 // ns since the reserve

	Touches uint32 // since the reserve
}

// Holds returns up to n jobs that the session has reserved, the oldest reservation first.
func (e *Engine) Holds(now int64, s *Session, n int) (holds []Hold) {
	for i := s.held.first; i != none && len(holds) < n; {
		j := e.jobs.at(i)
		c := e.jobs.held(j)
		holds = append(holds, Hold{j.id, e.tubeOfJob(j).name, now - c.when, c.touches})
		i = c.heldAfter
		e.turnWork++
	}
	return holds
}
