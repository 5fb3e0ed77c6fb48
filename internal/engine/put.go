package engine

// A Spec is what a put says of a job beside its body.
type Spec struct {
	Pri   uint32
	Delay uint32 // s
	TTR   uint32 // s; 0 becomes 1, as in beanstalkd
}

// Put adds a job to the tube that the session uses. With Options.Logged the
// body must not change until the turn's Changes are written.
//
// A put that is refused costs an id, as in beanstalkd.
func (e *Engine) Put(now int64, s *Session, spec Spec, body []byte) (id uint64, outcome Outcome) {
	e.SkipID(s)
	if e.draining {
		return 0, Draining
	}
	t := s.use
	if e.limited && !e.hasRoom(t, uint32(len(body)), true) {
		return 0, OutOfMemory
	}
	if o := e.admit(JobPut, t, uint32(len(body))); o != OK {
		return 0, o
	}
	e.work += len(body) / bytesPerUnit
	i, j := e.jobs.alloc()
	j.id = e.lastID
	j.created = now
	j.pri, j.delay, j.ttr = spec.Pri, spec.Delay, max(spec.TTR, 1)
	e.enter(i, j, t, body)
	t.totalJobs++
	e.stats.TotalJobs++
	id = j.id

	j.state = Ready
	if j.delay > 0 {
		j.state = Delayed
		j.due = now + int64(j.delay)*second
	}
	e.emitPut(j, body)
	e.attach(i, j)
	if j.state == Ready {
		e.match(now, t)
	}
	return id, OK
}

// SkipID uses up an id, for a put whose body was not what it announced. It makes
// the session a producer, as does each Put.
func (e *Engine) SkipID(s *Session) {
	if !s.producer {
		s.producer = true
		e.stats.Producers++
	}
	e.lastID++
}
