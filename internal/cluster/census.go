package cluster

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A census is how the queues of all members are compared while they go on. There is no
// moment at which all could be looked at: a walk takes many turns, and the leader is
// ahead of what is agreed on. So each member notes which jobs have facts in the log,
// walks over its engine, and keeps a hash of each job. Jobs with a fact in the entries
// from before the first walk to after the last are left out of the comparison, by all
// members; the others were the same all the time, so all must have the same hashes of
// them.
//
//	c, from, err := m.BeginCensus(due)   // at each member; it notes facts from now on
//	c.Walk(from)                         // with the highest from of all
//	until, over, err := c.Walked()       // until it is over at all
//	sums, ok := c.Sums(from, until)      // with the highest until of all
//	m.EndCensus(c)

// CensusTime is how long a census may take. A job that comes due within this time counts
// as ready.
const CensusTime = 10 * time.Minute

// CensusBuckets is how many sums there are.
const CensusBuckets = 4096

const (
	censusBytes = 256 << 10 // of bodies that are looked at in a turn, about
	censusFacts = 8 << 20   // noted, at most: 128 MiB
)

// A Census is the part of one member in one. Its methods may be called from any
// goroutine.
type Census struct {
	m   *Member
	due int64 // what is due by then counts as ready, in the cluster's time

	mu      sync.Mutex
	walking bool
	applied uint64 // facts of the entries up to here are noted
	until   uint64 // what was walked over has nothing from entries after this one; 0: the walk is under way
	facts   []fact
	seen    []Counted
	err     error
}

// A fact is that an entry says something of a job or a pause.
type fact struct{ entry, key uint64 }

// A Counted is a job, or the pause of a tube, and the hash of what a member has of it.
type Counted struct {
	Key  uint64 `json:"key"` // see JobOf
	Hash uint64 `json:"hash"`
}

// maxJob is above all ids of jobs.
const maxJob = 1 << 63

// JobOf returns the job that a key is that of; 0: it is that of a pause.
func JobOf(key uint64) uint64 {
	if key >= maxJob {
		return 0
	}
	return key
}

// keyOf returns the key of what a change is about; 0: of nothing that is compared.
func keyOf(c *engine.Change) uint64 {
	switch c.Kind {
	case engine.TubePaused, engine.TubeGone:
		h := fnv.New64a()
		h.Write([]byte(c.Tube))
		return h.Sum64() | maxJob
	}
	return c.ID
}

// BeginCensus notes facts from now on, and returns the last entry whose facts are not
// noted. What is due by a time of the cluster counts as ready; 0: within CensusTime. A
// census that was begun before comes to its end.
func (m *Member) BeginCensus(due int64) (c *Census, from uint64, err error) {
	if due == 0 {
		due = m.clock.time() + int64(CensusTime)
	}
	err = errors.New("cluster: the member's leadership ends at the moment; try again")
	m.broker.Look(func(*engine.Engine, int64) {
		t := &m.turn
		t.endCensus(errCensusOver)
		from, err = t.applied.Index, nil
		c = &Census{m: m, due: due, applied: from}
		t.census = c
	})
	return c, from, err
}

// Due is the time of the cluster that BeginCensus was given, or has chosen.
func (c *Census) Due() int64 { return c.due }

// EndCensus forgets a census.
func (m *Member) EndCensus(c *Census) {
	m.broker.Look(func(*engine.Engine, int64) {
		if m.turn.census == c {
			m.turn.census = nil
		}
	})
	c.fail(errCensusOver)
}

// endCensus ends the census that is under way, if there is one.
func (t *turn) endCensus(err error) {
	if t.census != nil {
		t.census.fail(err)
		t.census = nil
	}
}

var errCensusOver = errors.New("cluster: another comparison was begun, or this one was given up")

// note notes the facts of an entry that was applied.
func (c *Census) note(entry uint64, changes []engine.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.applied = entry; c.err != nil {
		return
	}
	for i := range changes {
		if key := keyOf(&changes[i]); changes[i].Kind != engine.LastID {
			c.facts = append(c.facts, fact{entry, key})
		}
	}
	if len(c.facts) > censusFacts {
		c.failLocked(fmt.Errorf("cluster: more than %d changes were made during the comparison: try again when less is done", censusFacts))
	}
}

func (c *Census) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failLocked(err)
}

// failLocked is fail with mu held.
func (c *Census) failLocked(err error) {
	if c.err == nil {
		c.err = err
	}
	c.facts, c.seen = nil, nil
}

// Walk begins the walk when the member has applied an entry.
func (c *Census) Walk(from uint64) {
	c.mu.Lock()
	first := !c.walking
	c.walking = true
	c.mu.Unlock()
	m := c.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if !first || m.phase == failed {
		return
	}
	m.done.Go(func() {
		ctx, cancel := m.context()
		defer cancel()
		if err := c.walk(ctx, from); err != nil {
			c.fail(err)
		}
	})
}

// censusPause is the time between two turns of a walk, in which the member's own work
// goes on.
const censusPause = time.Millisecond

func (c *Census) walk(ctx context.Context, from uint64) error {
	for c.Applied() < from {
		if err := c.pause(ctx, 10*censusPause); err != nil {
			return err
		}
	}
	w := censusWalk{hasher: engine.Hasher{Now: c.due - c.m.clock.zero, Epoch: c.m.clock.zero}}
	for !w.over {
		same := false
		c.m.broker.Look(func(e *engine.Engine, _ int64) {
			if w.engine == nil {
				w.engine = e
			}
			if same = w.engine == e && c.m.turn.isWhole(); same {
				w.over = w.tour.slice(e, censusBytes, w.add)
			}
		})
		if !same {
			return errors.New("cluster: the leader has changed during the comparison; try again")
		}
		if err := c.pause(ctx, censusPause); err != nil {
			return err
		}
	}
	until, err := c.m.settled(w.engine)
	if err != nil {
		return err
	}
	if c.m.clock.time() > c.due {
		return fmt.Errorf("cluster: the comparison took longer than %v", CensusTime)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.until, c.seen = until, w.seen
	}
	return c.err
}

// settled waits until nothing that an engine has had before can be lost any more, and
// returns an entry that none of it comes after. A leader's engine is ahead of what is
// committed.
func (m *Member) settled(walked *engine.Engine) (until uint64, err error) {
	t, same, decides := &m.turn, false, false
	err = m.broker.Call(func(e *engine.Engine, _ int64) {
		same = e == walked && m.turn.isWhole()
		until, decides = t.applied.Index, t.epoch != 0
	})
	switch {
	case err != nil:
		return 0, err
	case !same:
		return 0, errors.New("cluster: the leadership of this member has ended meanwhile")
	case decides && !m.inLoop(func() { until = max(until, m.raft.core.Status().GetCommit()) }):
		return 0, ErrStopped
	}
	return until, nil
}

// pause lets the member do other work. An error says that the census is over.
func (c *Census) pause(ctx context.Context, d time.Duration) error {
	c.m.sleep(ctx, d)
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// A censusWalk is a walk over an engine. Its fields are those of its turns.
type censusWalk struct {
	hasher engine.Hasher
	engine *engine.Engine
	tour   walk
	seen   []Counted
	over   bool
}

func (w *censusWalk) add(c *engine.Change) (bytes int) {
	if hash := w.hasher.Hash(c); hash != 0 {
		w.seen = append(w.seen, Counted{keyOf(c), hash})
	}
	return len(c.Body)
}

// Walked returns an entry such that what was walked over has nothing of a later one. over
// is false while the walk goes on.
func (c *Census) Walked() (until uint64, over bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.until, c.until != 0, c.err
}

// CensusSums are what one member has counted, without what has changed meanwhile.
type CensusSums struct {
	Jobs    uint64   `json:"jobs"`    // that are compared
	Changed uint64   `json:"changed"` // jobs and pauses that are left out
	Buckets []uint64 `json:"buckets"` // CensusBuckets sums: of the hashes of those whose key modulo that is the index
}

// Applied returns up to which entry the facts are noted.
func (c *Census) Applied() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.applied
}

// Sums returns what the member has, without what has facts in the entries after from, up
// to until. It is false while the member has not applied until.
func (c *Census) Sums(from, until uint64) (s CensusSums, ok bool, err error) {
	s.Buckets = make([]uint64, CensusBuckets)
	s.Changed, ok, err = c.count(from, until, func(k Counted) {
		if JobOf(k.Key) != 0 {
			s.Jobs++
		}
		s.Buckets[k.Key%CensusBuckets] += k.Hash
	})
	return s, ok, err
}

// Of returns what is in one bucket.
func (c *Census) Of(from, until uint64, bucket int) (in []Counted, err error) {
	_, _, err = c.count(from, until, func(k Counted) {
		if k.Key%CensusBuckets == uint64(bucket) {
			in = append(in, k)
		}
	})
	return in, err
}

// count calls f for all that is compared, and returns how many are not.
func (c *Census) count(from, until uint64, f func(Counted)) (changed uint64, ok bool, err error) {
	c.mu.Lock()
	facts, seen, err := c.facts, c.seen, c.err // what they have does not change
	ok = err == nil && c.until != 0 && c.applied >= until
	c.mu.Unlock()
	if !ok {
		return 0, false, err
	}
	out := make(map[uint64]struct{})
	for _, k := range facts {
		if from < k.entry && k.entry <= until {
			out[k.key] = struct{}{}
		}
	}
	for _, k := range seen {
		if _, ok := out[k.Key]; !ok {
			f(k)
		}
	}
	return uint64(len(out)), true, nil
}
