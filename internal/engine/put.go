package engine

// A Spec contains the attributes of a put, without the body.
type Spec struct {
	Pri   uint32
	Delay uint32 // s
	TTR   uint32 // in seconds; 0 becomes 1, as in beanstalkd
	Again bool   // ignore duplicates, despite the policy

	// Buried buries the job. If the Log refuses the burial, the job stays ready or delayed.
	Buried bool
}

// Put adds a job to the tube that the session uses. If Options.Logged is set, the body
// must not change until the turn's Changes are written.
//
// As in beanstalkd, a refused put uses up an id, unless the outcome is TooBig. If the
// policy of the tube finds a duplicate, the outcome is Duplicate and id is the existing
// job's id.
func (e *Engine) Put(now int64, s *Session, spec Spec, body []byte) (id uint64, outcome Outcome) {
	e.SkipID(s)
	if e.draining {
		return 0, Draining
	}
	return e.put(now, s.use, spec, body)
}

// PutInto adds a job to the named tube without a session. It creates the tube if
// necessary. The outcome is also OutOfMemory if there would be too many tubes.
func (e *Engine) PutInto(now int64, name []byte, spec Spec, body []byte) (id uint64, outcome Outcome) {
	e.lastID++
	switch {
	case e.draining:
		return 0, Draining
	case !e.hasRoomForTube(name):
		return 0, OutOfMemory
	}
	t := e.tubeOf(name)
	id, outcome = e.put(now, t, spec, body)
	e.removeIfUnused(t) // unless it has jobs: a waiting session got the job, or the job was refused
	return id, outcome
}

// put adds a job with the last assigned id to a tube.
func (e *Engine) put(now int64, t *tube, spec Spec, body []byte) (id uint64, outcome Outcome) {
	hash := uint32(0)
	if t.keyed && !spec.Again {
		var equal slot
		if hash, equal = e.findKey(now, t, body); equal != none {
			return e.duplicate(now, t, equal, spec, body)
		}
	}
	if e.ids.n >= maxJobs {
		return 0, OutOfMemory
	}
	if n := uint32(len(body)); e.limited {
		if o := e.room(t, n, 1, int64(n), memoryOf(n)); o != OK {
			if o == TooBig {
				e.lastID-- // a put that is too large uses up no id
			}
			return 0, o
		}
	}
	if o := e.admit(JobPut, t, uint32(len(body)+markLen(e.schedules.firing.name, e.schedules.firing.mark))); o != OK {
		return 0, o
	}
	e.turnWork += len(body) / bytesPerUnit
	i, j := e.jobs.alloc()
	j.id = e.lastID
	j.created = now
	j.pri, j.delayAndCounts, j.ttr = spec.Pri, spec.Delay, max(spec.TTR, 1)
	e.addJob(i, j, t, body)
	if hash != 0 {
		e.keys.add(i, hash)
	}
	t.counts.TotalJobs++
	e.stats.TotalJobs++
	id = j.id

	j.setState(Ready)
	if spec.Delay > 0 {
		j.setState(Delayed)
	}
	e.emitPut(i, j, body)
	e.attach(t, i, j)
	if spec.Buried { // before a waiting worker gets the job
		outcome = e.bury(i, j, spec.Pri, Taken)
	}
	if j.state() == Ready {
		e.match(now, t)
	}
	return id, outcome
}

// SkipID uses up an id for a put whose body does not have the announced length. Like Put,
// it makes the session a producer.
func (e *Engine) SkipID(s *Session) {
	if !s.producer {
		s.producer = true
		e.stats.Producers++
	}
	e.lastID++
}

// MaxSafeID is the highest id that clients with floating-point numbers distinguish from
// its neighbors. Only a defect can make a server exceed it.
const MaxSafeID = 1<<53 - 1
