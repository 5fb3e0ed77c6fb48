package sim

import (
	"bytes"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/google/go-cmp/cmp"
)

// A recorder is a journal that records its changes in the history.
type recorder struct {
	*journal.Journal
	syncs   bool       // a sync was promised
	mu      sync.Mutex // guards the history, because Sync runs during turns
	history *history
	epoch   int64
}

func (r *recorder) Append(changes []engine.Change) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range changes {
		r.history.enter(c, r.epoch)
	}
	return r.Journal.Append(changes)
}

func (r *recorder) Flush() (durable bool, err error) {
	durable, err = r.Journal.Flush()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.Journal.Stats().Err == nil {
		r.history.flushed = r.history.old + len(r.history.facts)
		if !r.syncs {
			r.history.ack(r.history.flushed)
		}
	}
	return durable, err
}

func (r *recorder) Sync() error {
	r.mu.Lock()
	flushed := r.history.flushed
	r.mu.Unlock()
	err := r.Journal.Sync()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.history.ack(flushed)
	}
	return err
}

// A history determines the state that a restarted server must find. The state is the
// result of a prefix of the facts, which contains at least the first sure facts.
type history struct {
	base    *state
	facts   []fact
	acked   int    // number of acknowledged facts
	sure    int    // number of facts that the next server must find
	last    uint64 // the highest job id so far
	old     int    // number of facts in base
	flushed int    // number of flushed facts, including old ones

	anyPauses bool // ended pauses can return, because the disk was full when they ended
}

// A fact is a Change with times that count from 1970.
type fact struct {
	at time.Time
	c  engine.Change
}

func newHistory() *history { return &history{base: newState()} }

func (h *history) enter(c engine.Change, epoch int64) {
	c.Body, c.Failure = bytes.Clone(c.Body), bytes.Clone(c.Failure)
	c.Created += epoch
	if c.Kind == engine.TubePaused || c.State == engine.Delayed {
		c.Due += epoch
	}
	h.facts = append(h.facts, fact{time.Now(), c})
	h.last = max(h.last, c.ID)
	// Old acknowledged facts move into the base.
	for h.acked > 0 && len(h.facts) > 4096 {
		h.base.apply(&h.facts[0].c)
		h.facts = h.facts[1:]
		h.acked--
		h.old++
	}
}

// ack records that the first n of all facts are acknowledged.
func (h *history) ack(n int) { h.acked = max(h.acked, n-h.old) }

// rest makes s the base of later changes.
func (h *history) rest(s *state) { *h = history{base: s, last: h.last, anyPauses: h.anyPauses} }

// settled records a clean end of the server. killed and powerCut record other ends.
func (h *history) settled(had *state) {
	had.last = h.last // ids of refused jobs do not count
	h.rest(had)
}

func (h *history) killed() { h.sure = h.acked }

// powerCut allows the loss of changes that were acknowledged less than a sync interval
// ago.
func (h *history) powerCut(now time.Time, sync time.Duration) {
	h.sure = h.acked
	for sync != 0 && h.sure > 0 && (sync < 0 || now.Sub(h.facts[h.sure-1].at) <= sync) {
		h.sure--
	}
}

// check determines the number of facts that were found, or returns the difference. On
// success, these facts become the base.
func (h *history) check(found *state, now time.Time) error {
	now = now.Add(100 * time.Microsecond) // the broker's clock can be ahead by this much
	s := h.base.clone()
	for i := range h.sure {
		s.apply(&h.facts[i].c)
	}
	least := s.clone()
	for n := h.sure; ; n++ {
		if s.explains(found, now, h.anyPauses) {
			h.rest(found)
			h.last = found.last
			return nil
		}
		if n == len(h.facts) {
			break
		}
		s.apply(&h.facts[n].c)
	}
	return fmt.Errorf("no prefix of the changes results in the found state.\nresult of the %d required of %d changes (-), found state (+):\n%s\nresult of all changes (-):\n%s",
		h.sure, len(h.facts), least.diff(found, now), s.diff(found, now))
}

// A state is a server's state in plain maps.
type state struct {
	jobs   map[uint64]job
	pauses map[string]pause
	set    map[string]string // policies, by pattern
	last   uint64            // last job id
	exact  bool              // reserves and timeouts are final
}

type job struct {
	Tube, Body         string
	State              engine.State
	Pri, Delay, TTR    uint32
	Created, Due       int64
	Releases, Buries   uint32
	Kicks              uint32
	Reserves, Timeouts uint32
}

type pause struct {
	Delay uint32
	Due   int64
}

func newState() *state {
	return &state{jobs: make(map[uint64]job), pauses: make(map[string]pause), set: make(map[string]string)}
}

func (s *state) clone() *state {
	return &state{maps.Clone(s.jobs), maps.Clone(s.pauses), maps.Clone(s.set), s.last, s.exact}
}

func stateOf(e *engine.Engine, epoch int64) *state {
	s := newState()
	for c := range e.Snapshots {
		c.Created += epoch
		if c.State == engine.Delayed {
			c.Due += epoch
		}
		s.apply(&c)
	}
	for c := range e.Pauses {
		s.pauses[c.Tube] = pause{c.Delay, c.Due + epoch}
	}
	for c := range e.Named() {
		s.apply(&c)
	}
	s.last = e.LastID()
	return s
}

func (s *state) apply(c *engine.Change) {
	s.exact = false
	j, ok := s.jobs[c.ID]
	switch c.Kind {
	case engine.JobPut, engine.JobMoved:
		j.Tube, j.Body, ok = c.Tube, string(c.Body), true
		fallthrough
	case engine.JobState:
		if ok {
			s.jobs[c.ID] = job{
				Tube: j.Tube, Body: j.Body, State: c.State, Pri: c.Pri, Delay: c.Delay, TTR: c.TTR, Created: c.Created, Due: c.Due,
				Releases: c.Releases, Buries: c.Buries, Kicks: c.Kicks, Reserves: c.Reserves, Timeouts: c.Timeouts,
			}
		}
	case engine.JobDeleted:
		delete(s.jobs, c.ID)
	case engine.TubePaused:
		s.pauses[c.Tube] = pause{c.Delay, c.Due}
		if c.Delay == 0 {
			delete(s.pauses, c.Tube)
		}
	case engine.TubeGone:
		delete(s.pauses, c.Tube)
	}
	fact := *c
	if mark, ok := c.MarkOf(); ok {
		fact = mark
	}
	if name := fmt.Sprint(fact.Kind, fact.Tube); fact.Kind.IsNamed() {
		s.set[name] = string(fact.Body)
		if len(fact.Body) == 0 {
			delete(s.set, name)
		}
	}
	s.last = max(s.last, c.ID)
}

// explains reports whether found is this state. Reservations and timeouts are not logged
// on their own, so found can contain more of them.
func (s *state) explains(found *state, now time.Time, anyPauses bool) bool {
	if len(s.jobs) != len(found.jobs) || found.last < s.last || !maps.Equal(s.set, found.set) {
		return false
	}
	for id, want := range s.jobs {
		got, ok := found.jobs[id]
		if !ok || want.at(now, got, s.exact) != got.at(now, got, s.exact) {
			return false
		}
	}
	for tube, want := range s.pauses {
		if want.Due > now.UnixNano() && found.pauses[tube] != want {
			return false
		}
	}
	for tube, got := range found.pauses {
		if got.Due > now.UnixNano() && s.pauses[tube] != got && !anyPauses {
			return false
		}
	}
	return true
}

// at returns the job at a time: a delayed job can be ready by then. Unless the counters
// are exact, it uses got's reserves and timeouts, which are not logged, if they are not
// lower.
func (j job) at(now time.Time, got job, exact bool) job {
	if j.State == engine.Delayed && j.Due <= now.UnixNano() {
		j.State, j.Due = engine.Ready, 0
	}
	if !exact && j.Reserves <= got.Reserves && j.Timeouts <= got.Timeouts {
		j.Reserves, j.Timeouts = got.Reserves, got.Timeouts
	}
	return j
}

func (s *state) diff(found *state, now time.Time) string {
	plain := func(s *state) map[uint64]job {
		jobs := make(map[uint64]job)
		for id, j := range s.jobs {
			j = j.at(now, found.jobs[id], s.exact)
			j.Body = fmt.Sprintf("%d bytes, %.10q", len(j.Body), j.Body)
			jobs[id] = j
		}
		return jobs
	}
	return cmp.Diff(plain(s), plain(found)) + cmp.Diff(s.pauses, found.pauses) + cmp.Diff(s.set, found.set) + fmt.Sprintf("last id %d, %d", s.last, found.last)
}
