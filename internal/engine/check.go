package engine

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Check tests every invariant of the package and reports all violations by number. It
// examines the whole state, so it is for tests only.
func (e *Engine) Check() error {
	c := checker{e: e, references: make(map[uint32]references), bytes: make(map[uint32]int64), colds: make(map[slot]bool)}
	c.jobs()
	c.countReferences()
	c.segments()
	for _, t := range e.tubes {
		if t != nil {
			c.tube(t)
		}
	}
	for _, s := range e.sessions {
		if s != nil {
			c.session(s)
		}
	}
	c.counts()
	c.slots("jobs", &e.jobs.slots)
	c.slots("cold parts of jobs", &e.jobs.colds.slots)
	c.slots("leaves", &e.jobs.leaves.slots)
	c.slots("nodes", &e.ids.nodes.slots)
	for i := range e.bodies.classes {
		if e.bodies.classes[i].slots.pages == nil {
			continue
		}
		c.slots(fmt.Sprintf("bodies of %d bytes", e.bodies.classes[i].size), &e.bodies.classes[i].slots)
	}
	c.slots("large bodies", &e.bodies.large.slots)
	c.timers()
	c.origins()
	c.failures()
	c.keys()
	c.assert(e.staleSweep.tubes == c.stales && (e.staleSweep.due != Never || c.stales == 0), "I26: the policies of %d tubes make jobs stale, but %d are counted; the next pass is due at %d", c.stales, e.staleSweep.tubes, e.staleSweep.due)
	return errors.Join(c.broken...)
}

type checker struct {
	e          *Engine
	broken     []error
	sum        Stats            // sums of tubes and sessions
	stales     int              // number of tubes whose policies make jobs stale
	inQueue    int              // jobs found in queues and heaps
	bytes      map[uint32]int64 // total size of the bodies, by number of the tube
	memory     int64
	colds      map[slot]bool         // cold parts of jobs
	closed     int                   // number of closed sessions
	references map[uint32]references // by number of the tube
}

// references counts the references of sessions to a tube.
type references struct{ using, watching, reserved int }

func (c *checker) assert(ok bool, format string, args ...any) {
	if !ok {
		c.broken = append(c.broken, fmt.Errorf(format, args...))
	}
}

// jobs checks the index and the references of each job.
func (c *checker) jobs() {
	e := c.e
	n := uint64(0)
	c.index(func(i slot) {
		j := e.jobs.at(i)
		n++
		c.assert(e.ids.find(j.id) == i, "I11: job %d is not found", j.id)
		c.assert(j.id <= e.lastID, "I7: job %d is above the last id %d", j.id, e.lastID)
		c.assert(int(j.tube()) < len(e.tubes) && e.tubes[j.tube()] != nil, "I2: job %d is in tube number %d, which is free", j.id, j.tube())
		cold := e.jobs.coldOf(j)
		c.assert(j.state() != Reserved || int(cold.holder) < len(e.sessions) && e.sessions[cold.holder] != nil, "I2: job %d is held by session number %d, which is free", j.id, cold.holder)
		c.assert(j.cold != none || j.state() != Reserved && j.state() != Buried, "I22: job %d (%v) has no cold part", j.id, j.state())
		c.assert(j.state() == Buried || !j.packed(), "I22: job %d (%v) is packed", j.id, j.state())
		if j.cold != none && !j.packed() {
			c.assert(!c.colds[j.cold], "I22: job %d has the cold part of another", j.id)
			c.colds[j.cold] = true
		}
		c.bytes[j.tube()] += int64(j.bodyLen)
		c.memory += memoryOf(j.bodyLen)
		if r := e.failureOf(i); r != nil {
			c.memory += failureBytes + memoryOf(uint32(len(r))) - jobBytes
		}
		c.assert(j.state() != Reserved || cold.due >= cold.when+int64(j.ttr)*second, "I18: the TTR of job %d expires too early", j.id)
		c.assert(j.ttr > 0, "I8: job %d has no TTR", j.id)
	})
	c.assert(len(c.colds) == e.jobs.coldCount, "I22: %d jobs have a cold part, but %d are counted", len(c.colds), e.jobs.coldCount)
	c.assert(!c.colds[e.jobs.spareCold], "I22: the spare cold part is that of a job")
	c.memory += int64(len(c.colds))*coldBytes + int64(e.keys.held)*keyBytes
	c.assert(n == e.ids.n, "I11: the index counts %d jobs and has %d", e.ids.n, n)
}

// segments checks that only jobs have segments.
func (c *checker) segments() {
	jobs := &c.e.jobs
	for page, segments := range jobs.segments {
		for k := 0; segments != nil && k < slotsPerPage; k++ {
			i := slot(page*slotsPerPage + k)
			c.assert(segments[k] == 0 || page < len(jobs.pages) && jobs.pages[page] != nil && c.e.ids.find(jobs.at(i).id) == i, "I23: slot %d is free, and has segment %d", i, segments[k])
		}
	}
}

// index calls each for the jobs in the index, and checks the nodes of the index.
func (c *checker) index(each func(slot)) {
	x := &c.e.ids
	var down func(number uint32, first uint64, shift uint)
	down = func(number uint32, first uint64, shift uint) {
		n := x.nodes.at(number)
		c.assert(!n.empty() || number == x.root || first>>shift>>idBits == x.tip>>shift>>idBits, "I11: the node of id %d and more, bit %d, is empty", first, shift)
		for k, what := range n {
			switch id := first | uint64(k)<<shift; {
			case what == none:
			case what&isNode != 0:
				down(what&^isNode, id, shift-idBits)
			default:
				each(what)
			}
		}
	}
	down(x.root, 0, x.bits-idBits)
	for _, r := range x.recent {
		if r.node != nil {
			number, shift := x.root, x.bits-idBits
			for ; shift > r.shift; shift -= idBits {
				number = *x.nodes.at(number).place(r.prefix<<idBits, shift) &^ isNode
			}
			c.assert(x.nodes.at(number) == r.node, "I11: the recent node of the ids starting with %d is not node %d", r.prefix<<idBits, number)
		}
	}
}

// countReferences counts the references of sessions to each tube.
func (c *checker) countReferences() {
	add := func(t uint32, using, watching, reserved int) {
		has := c.references[t]
		c.references[t] = references{has.using + using, has.watching + watching, has.reserved + reserved}
	}
	for _, s := range c.e.sessions {
		if s == nil {
			continue
		}
		if s.use != nil {
			add(s.use.num, 1, 0, 0)
		}
		for _, w := range s.watches {
			add(w.tube.num, 0, 1, 0)
		}
		for i := range s.reserved.after(key{}) {
			add(c.e.jobs.at(i).tube(), 0, 0, 1)
		}
	}
}

// queue checks a queue, and that the fields of its jobs are correct for that queue.
func (c *checker) queue(where string, q *queue, state State, fits func(*job) bool) (urgent int) {
	var before key
	var tail *leaf
	n, jobs := 0, &c.e.jobs
	for p, page := range q.pages {
		c.assert(len(page.leaves) > 0 && len(page.leaves) <= pageLeaves && (p == 0 || before.Before(page.low)), "I20: %s: page %d has %d leaves, or starts before the end of the previous one", where, p, len(page.leaves))
		for at, r := range page.leaves {
			l := jobs.leaves.at(r.number)
			tail = l
			c.assert(p+at > 0 || l == q.head, "I19: %s: leaf %d is not the head", where, r.number)
			c.assert(int(l.from) < len(l.entries) || q.n == 0 && len(q.pages) == 1 && len(page.leaves) == 1, "I19: %s: leaf %d of page %d is empty", where, at, p)
			c.assert(p+at == 0 || before.Before(r.low), "I20: %s: leaf %d of page %d starts before the end of the previous one", where, at, p)
			for _, x := range l.entries[l.from:] {
				j := jobs.at(x.slot)
				k := jobs.keyOf(j)
				c.assert(j.pos == r.number && x == k.entry(x.slot), "I20: %s: job %d is in leaf %d, and has pos %d, or another hint", where, j.id, r.number, j.pos)
				c.assert(j.state() == state && fits(j), "I1: %s: job %d (%v) does not belong there", where, j.id, j.state())
				c.assert(n == 0 || before.Before(k) && (p+at == 0 || !k.Before(r.low)), "I20: %s: job %d is not after the previous one", where, j.id)
				if j.pri < UrgentPri {
					urgent++
				}
				n, before = n+1, k
			}
		}
	}
	c.inQueue += n
	c.assert(q.n == n && q.tail == tail, "I19: %s: counts %d jobs, has %d, or has another tail", where, q.n, n)
	c.assert(n == 0 || !q.last.Before(before), "I20: %s: the last job is after last", where)
	return urgent
}

func (c *checker) tube(t *tube) {
	e := c.e
	name := fmt.Sprintf("tube %q", t.name)
	own := func(j *job) bool { return j.tube() == t.num }
	urgent := c.queue(name+" ready", &t.ready, Ready, own)
	c.queue(name+" delayed", &t.delayed, Delayed, own)
	c.queue(name+" buried", &t.buried, Buried, own)
	c.sum.Urgent += uint64(urgent)
	c.sum.Ready += uint64(t.ready.n)
	c.sum.Delayed += uint64(t.delayed.n)
	c.sum.Buried += uint64(t.buried.n)
	c.sum.Reserved += uint64(t.reserved)

	waiting := 0
	for w := t.waiters.first; w != nil; w = w.next {
		waiting++
		c.assert(w.tube == t && w.sess.waiting, "I5: %s: a session in its waiting list does not wait", name)
	}
	c.assert(!t.offers() || t.waiting == 0, "I3: %s: %d ready, %d waiting", name, t.ready.n, t.waiting)
	has := c.references[t.num]
	c.assert(t.using == has.using && t.watching == has.watching && t.reserved == has.reserved, "I4: %s: counts %d using, %d watching, %d reserved, has %+v", name, t.using, t.watching, t.reserved, has)
	c.gate(name, t)
	c.stales += int(count(t.policy.stales()))
	c.assert(t.bytes == c.bytes[t.num], "I4: %s: counts %d bytes, has %d", name, t.bytes, c.bytes[t.num])
	c.sum.Bytes += uint64(t.bytes)
	c.assert(t.urgent == urgent, "I4: %s: counts %d urgent jobs, has %d", name, t.urgent, urgent)
	c.assert(t.waiting == waiting, "I4: %s: counts %d waiting, has %d", name, t.waiting, waiting)
	c.assert(t == e.defaultTube || t.keptByPause || t.using+t.watching+t.jobs() > 0, "I9: %s: nothing refers to it", name)
	c.assert(e.tubes[t.num] == t && t.nameIndex < e.names.Len() && e.names.At(t.nameIndex) == t.name && e.byName[t.name] == t, "I9: %s: has the wrong place", name)
	c.assert(armed(&t.timer, t.next()), "I13: %s: its timer is too late", name)
}

// gate checks that a tube is shut if and only if it must be.
func (c *checker) gate(name string, t *tube) {
	c.assert(t.shut == (t.paused || t.gateShut()), "I24: %s: shut %v, paused %v, its gate shut %v", name, t.shut, t.paused, t.gateShut())
	c.assert(t.gate != nil || !t.policy.needsGate(), "I24: %s: has no gate", name)
	full := t.policy != nil && (t.policy.MaxReserved > 0 && t.reserved >= int(t.policy.MaxReserved) || t.policy.PausedUntil == math.MaxInt64)
	c.assert(t.gateShut() || !full, "I24: %s: is open, and %d are reserved", name, t.reserved)
	c.assert(!t.gateShut() || full || t.gate.opensAt != Never, "I24: %s: its gate is shut forever", name)
}

func (c *checker) session(s *Session) {
	e := c.e
	name := fmt.Sprintf("session %d", s.num)
	c.queue(name, &s.reserved, Reserved, func(j *job) bool { return c.e.jobs.coldOf(j).holder == s.num })
	c.held(name, s)
	for _, w := range s.watches {
		c.assert(e.byName[w.tube.name] == w.tube, "I9: %s: watches the removed tube %q", name, w.tube.name)
		listed := w.prev != nil || w.tube.waiters.first == w
		c.assert(listed == s.waiting, "I5: %s: waits %v, but in the list of tube %q: %v", name, s.waiting, w.tube.name, listed)
	}
	c.assert(armed(&s.timer, s.next()), "I13: %s: its timer is too late", name)
	if s.closed {
		c.closed++
		c.assert(!s.waiting && s.timer.pos >= 0, "I15: %s: is closed, but waits, or its timer is not set", name)
		return
	}
	c.sum.Sessions++
	c.sum.Waiting += count(s.waiting)
	c.sum.Producers += count(s.producer)
	c.sum.Workers += count(s.worker)
	c.assert(s.use != nil && e.byName[s.use.name] == s.use, "I9: %s: uses a removed tube", name)
	c.watches(name, s)
}

// watches checks that a session watches each tube only once.
func (c *checker) watches(name string, s *Session) {
	c.assert(len(s.watches) > 0, "I5: %s: watches no tube", name)
	for i, w := range s.watches {
		c.assert(s.indexOf(w.tube) == i, "I5: %s: watches tube %q twice", name, w.tube.name)
	}
}

// held checks the list of the jobs that a session has reserved.
func (c *checker) held(name string, s *Session) {
	n, before := 0, none
	for i := s.held.first; i != none && n <= s.reserved.n; i = c.e.jobs.coldOf(c.e.jobs.at(i)).heldAfter {
		j := c.e.jobs.at(i)
		c.assert(j.state() == Reserved && c.e.jobs.held(j).holder == s.num && c.e.jobs.held(j).heldBefore == before, "I14: %s: job %d must not be in its list", name, j.id)
		n, before = n+1, i
	}
	c.assert(n == s.reserved.n && s.held.last == before, "I14: %s: lists %d reserved jobs, has %d", name, n, s.reserved.n)
}

func armed(t *timer, at int64) bool { return at == Never || t.pos >= 0 && t.at <= at }

func count(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// counts compares the totals with the counts of tubes and sessions.
func (c *checker) counts() {
	e := c.e
	c.assert(len(e.byName) == e.names.Len(), "I9: %d tubes have a name, %d are listed", len(e.byName), e.names.Len())
	c.assert(len(e.tubes)-len(e.tubeNums) == e.names.Len(), "I9: %d tubes have a number, %d are listed", len(e.tubes)-len(e.tubeNums), e.names.Len())
	c.assert(len(e.sessions)-len(e.sessionNums) == int(c.sum.Sessions)+c.closed, "I15: %d sessions have a number, %d are open and %d closed", len(e.sessions)-len(e.sessionNums), c.sum.Sessions, c.closed)
	c.assert(c.inQueue == int(e.ids.n), "I1: %d jobs are in queues and heaps, %d in the index", c.inQueue, e.ids.n)

	for name := range e.byName {
		if name != DefaultTube {
			c.memory += tubeBytes + int64(len(name))
		}
	}
	c.assert(e.memory() == c.memory, "I6: memory is %d, not %d", e.memory(), c.memory)
	want := c.sum
	want.TotalJobs, want.TotalSessions, want.Timeouts = e.stats.TotalJobs, e.stats.TotalSessions, e.stats.Timeouts
	want.Deletes, want.Releases, want.Failed = e.stats.Deletes, e.stats.Releases, e.stats.Failed
	c.assert(e.stats == want, "I6: stats are %+v, not %+v", e.stats, want)
}

func (c *checker) slots(what string, s *slots) {
	open, empty := 0, 0
	for n := range s.pages {
		p := s.pages[n]
		free, before := uint32(0), uint32(0)
		for k, word := range p.free {
			if k == int(p.first) {
				before = free
			}
			free += uint32(bits.OnesCount64(word))
		}
		c.assert(free == p.nfree, "I10: %s: page %d counts %d free slots, has %d", what, n, p.nfree, free)
		c.assert(before == 0, "I10: %s: page %d has a free slot before word %d", what, n, p.first)
		if p.storage && free > 0 {
			open++
			c.assert(int(p.openPos) < len(s.open) && s.open[p.openPos] == uint32(n), "I10: %s: page %d is not open", what, n)
		}
		if p.storage && free == s.perPage {
			empty++
		}
	}
	c.assert(open == len(s.open), "I10: %s: %d pages have free slots, %d are open", what, open, len(s.open))
	c.assert(empty == s.empty && empty <= 1, "I10: %s: %d empty pages, counted %d", what, empty, s.empty)
}

// origins tests I27: only existing jobs have origins.
func (c *checker) origins() {
	for id, tube := range c.e.origins.of {
		i, _ := c.e.lookup(id)
		c.assert(i != none && tube != "", "I27: job %d has the origin %q, and is not there", id, tube)
	}
}

// failures tests I29.
func (c *checker) failures() {
	for i := range c.e.failures.of {
		j := c.e.jobs.at(i)
		_, ok := c.e.failureOf(i).Decode()
		c.assert(c.e.ids.find(j.id) == i && ok, "I29: slot %d has failure %q, but no job, or the failure is invalid", i, c.e.failureOf(i))
	}
}

// keys tests I28, for jobs with complete fields.
func (c *checker) keys() {
	if len(c.broken) > 0 {
		return
	}
	e, listed := c.e, make(map[slot]uint32)
	for hash, first := range e.keys.first.of {
		for before, i := none, first; i != none; before, i = i, e.keys.links.at(i).after {
			l := e.keys.links.at(i)
			c.assert(l.hash == hash && hash != 0 && l.before == before && listed[i] == 0, "I28: slot %d must not be in the list of a key", i)
			if listed[i] != 0 {
				return
			}
			listed[i] = hash
		}
	}
	c.assert(len(listed) == e.keys.held, "I28: %d jobs have a key, but %d are counted", len(listed), e.keys.held)
	e.each(func(i slot, j *job) bool {
		hash, t := uint32(0), e.tubeOfJob(j)
		if t.keyed && t.policy.UniqueWhile.has(j.state()) {
			if key, ok := t.policy.Unique.Of(new([]byte), e.body(j)); ok {
				hash = e.hashKey(t, key)
			}
		}
		c.assert(e.jobPass.underway() || hash == listed[i], "I28: job %d is in the list of hash %x, not %x", j.id, listed[i], hash)
		delete(listed, i)
		return true
	})
	c.assert(len(listed) == 0, "I28: %d slots without a job have a key", len(listed))
}

func (c *checker) timers() {
	for i, t := range c.e.timers {
		c.assert(t.pos == i, "I13: timer %d has pos %d", i, t.pos)
		there := t.tube != nil && c.e.tubes[t.tube.num] == t.tube || t.sess != nil && c.e.sessions[t.sess.num] == t.sess
		c.assert(there, "I13: timer %d belongs to a removed tube or session", i)
		c.assert(i == 0 || !t.Before(c.e.timers[(i-1)/2]), "I13: timer %d is before its parent", i)
	}
}
