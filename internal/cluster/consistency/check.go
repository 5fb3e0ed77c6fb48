// Package consistency compares the queues of the members of a cluster while they go on: a
// consistency check.
//
//	result := consistency.Verify(ctx, members, ask)   // at the side that compares; ask brings each Request to a member
//	reply, err := session.Do(member, &request)        // at that member
//
// The members cannot be compared at one moment: a member needs many turns to go over all
// jobs, and the leader is ahead of what is committed. So each member notes which jobs the
// entries of the log change, goes over its engine in slices, and keeps a hash of each job.
// The comparison leaves out the jobs that an entry has changed since before the first walk
// began and until after the last walk ended. The other jobs were the same all the time, so
// all members must have the same hashes of them (decision 23).
//
// A member knows nothing of that but two hooks: Observe and View of [Member].
//
// Start reading at check.go, the part of one member, then session.go and verify.go.
package consistency

import (
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A Member is one whose queue is compared; see [cluster.Member].
type Member interface {
	// Observe calls f, within turns, with the last entry that was applied and no changes,
	// and then with each entry that is applied and what it changes. Another f takes its
	// place; nil ends that.
	Observe(f func(entry uint64, changes []engine.Change)) error

	// View calls f in a turn with an engine that has what the entries say which were
	// applied or, at a leader, what it has decided after them. If it is settled View
	// returns when nothing of that can be lost any more, and an entry that none of it
	// comes after.
	View(settled bool, f func(*engine.Engine)) (until uint64, err error)

	// Time returns the cluster's time, and what it was when the engine's clock showed 0.
	Time() (now, zero int64)

	// Failed returns a channel that is closed when the member has ended.
	Failed() <-chan struct{}
}

// TimeLimit is how long a check may take; then it is given up. A job that comes due within
// this time counts as ready.
const TimeLimit = 10 * time.Minute

const (
	sliceBytes = 256 << 10             // of bodies that are looked at in a turn, about
	slicePause = time.Millisecond      // between two turns of a walk: the member's own work goes on
	waitPause  = 10 * time.Millisecond // between two looks at what the member has applied
	maxChanges = 8 << 20               // noted, at most: 128 MiB
)

// A check is the part of one member in a consistency check. Its methods may be called
// from any goroutine.
type check struct {
	m   Member
	due int64 // what is due by then counts as ready, in the cluster's time

	mu      sync.Mutex
	noting  bool
	walking bool
	from    uint64 // the last entry before those whose changes are noted
	applied uint64 // what the entries up to here change is noted
	until   uint64 // what was walked over has nothing from entries after this one; 0: the walk is under way
	changes []change
	seen    []Item
	err     error
}

// A change is that an entry changes a job, a pause or a policy that was set.
type change struct{ entry, key uint64 }

// An Item is a job, the pause of a tube or what was set for a pattern of tubes, and the
// hash of what a member has of it.
type Item struct {
	Key  uint64 `json:"key"` // see job
	Hash uint64 `json:"hash"`
}

// maxJob is above all ids of jobs.
const maxJob = 1 << 63

// job returns the job that an item is; 0: it is a pause or a policy.
func (i Item) job() uint64 {
	if i.Key >= maxJob {
		return 0
	}
	return i.Key
}

// keyOf returns the key of what a change is about; 0: of nothing that is compared.
func keyOf(c *engine.Change) uint64 {
	switch c.Kind {
	case engine.TubePaused, engine.TubeGone, engine.PolicySet:
		h := fnv.New64a()
		h.Write([]byte(c.Tube))
		if c.Kind == engine.PolicySet {
			h.Write([]byte("*")) // no tube has such a name
		}
		return h.Sum64() | maxJob
	}
	return c.ID
}

// begin begins a check. What is due by a time of the cluster counts as ready; 0: within
// TimeLimit.
func begin(m Member, due int64) (*check, error) {
	if due == 0 {
		now, _ := m.Time()
		due = now + int64(TimeLimit)
	}
	c := &check{m: m, due: due}
	return c, m.Observe(c.note)
}

// errOver is that of a check which is under way no more.
var errOver = errors.New("another consistency check was begun, or this one was given up")

// end ends the check.
func (c *check) end() {
	_ = c.m.Observe(nil) // a member that has ended calls no note
	c.fail(errOver)
}

// note notes what an entry changes. A member that leads no more may apply entries again.
func (c *check) note(entry uint64, changes []engine.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.noting:
		c.noting, c.from, c.applied = true, entry, entry
		return
	case c.err != nil, entry <= c.applied:
		return
	case entry > c.applied+1:
		c.failLocked(errors.New("the member has received the whole queue"))
		return
	}
	c.applied = entry
	for i := range changes {
		if changes[i].Kind != engine.LastID {
			c.changes = append(c.changes, change{entry, keyOf(&changes[i])})
		}
	}
	if len(c.changes) > maxChanges {
		c.failLocked(fmt.Errorf("more than %d changes were made during the consistency check: try again when less is done", maxChanges))
	}
}

func (c *check) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failLocked(err)
}

// failLocked is fail with mu held.
func (c *check) failLocked(err error) {
	if c.err == nil {
		c.err = err
	}
	c.changes, c.seen = nil, nil
}

// walk begins the walk, unless it has begun. It waits until the member has applied an entry.
func (c *check) walk(from uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.walking {
		return
	}
	c.walking = true
	go func() {
		if err := c.walkAll(from); err != nil {
			c.fail(err)
		}
	}()
}

// errLeaderChanged is that of a member whose engine is another one than it was.
var errLeaderChanged = errors.New("the leader has changed during the consistency check; try again")

func (c *check) walkAll(from uint64) error {
	for applied, _, err := c.state(); applied < from; applied, _, err = c.state() {
		if err != nil {
			return err
		}
		if err := c.pause(waitPause); err != nil {
			return err
		}
	}
	_, zero := c.m.Time()
	hasher := engine.Hasher{Now: c.due - zero, Epoch: zero}
	var seen []Item
	each := func(c *engine.Change) (bytes int) {
		if hash := hasher.Hash(c); hash != 0 {
			seen = append(seen, Item{keyOf(c), hash})
		}
		return len(c.Body)
	}
	var walked *engine.Engine
	var w walk
	same, over := true, false
	view := func(e *engine.Engine) {
		if walked == nil {
			walked = e
		}
		if same = walked == e; same && !over {
			over = w.slice(e, sliceBytes, each)
		}
	}
	var until uint64
	for settled := false; !settled; {
		settled = over // the last turn only waits until what was seen can be lost no more
		var err error
		if until, err = c.m.View(settled, view); err != nil {
			return err
		}
		if !same {
			return errLeaderChanged
		}
		if err := c.pause(slicePause); err != nil {
			return err
		}
	}
	if now, _ := c.m.Time(); now > c.due {
		return fmt.Errorf("the consistency check took longer than %v", TimeLimit)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.until, c.seen = until, seen
	}
	return c.err
}

// pause lets the member do other work. An error says that the check is over.
func (c *check) pause(d time.Duration) error {
	select {
	case <-time.After(d):
	case <-c.m.Failed():
		return errOver
	}
	_, _, err := c.state()
	return err
}

// state returns up to which entry changes are noted, and an entry such that what was
// walked over has nothing of a later one; 0 while the walk goes on.
func (c *check) state() (applied, until uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.applied, c.until, c.err
}

// sums returns what the member has, without what was changed by the entries after from,
// up to until; nil while the member has not applied until.
func (c *check) sums(from, until uint64) (*Sums, error) {
	s := &Sums{Buckets: make([]uint64, buckets)}
	changed, ok, err := c.count(from, until, func(i Item) {
		if i.job() != 0 {
			s.Jobs++
		}
		s.Buckets[i.Key%buckets] += i.Hash
	})
	if s.Changed = changed; !ok {
		return nil, err
	}
	return s, nil
}

// in returns what is in one bucket.
func (c *check) in(from, until uint64, bucket int) (in []Item, err error) {
	_, _, err = c.count(from, until, func(i Item) {
		if i.Key%buckets == uint64(bucket) {
			in = append(in, i)
		}
	})
	return in, err
}

// count calls f for all that is compared, and returns how many are not.
func (c *check) count(from, until uint64, f func(Item)) (changed uint64, ok bool, err error) {
	c.mu.Lock()
	changes, seen, err := c.changes, c.seen, c.err // what they have does not change
	ok = err == nil && c.until != 0 && c.applied >= until
	c.mu.Unlock()
	if !ok {
		return 0, false, err
	}
	out := make(map[uint64]struct{})
	for _, k := range changes {
		if from < k.entry && k.entry <= until {
			out[k.key] = struct{}{}
		}
	}
	for _, i := range seen {
		if _, ok := out[i.Key]; !ok {
			f(i)
		}
	}
	return uint64(len(out)), true, nil
}
