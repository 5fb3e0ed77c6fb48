// Package consistency compares the queues of a cluster's members while they serve
// clients: a consistency check.
//
//	result := consistency.Verify(ctx, members, ask)   // ask sends each Request to a member
//	reply, err := session.Do(member, &request)        // on that member
//
// The members cannot be compared at a single point in time: a member needs many turns to
// visit all jobs, and the leader is ahead of the committed entries. Therefore each member
// records the jobs that entries change, walks over its engine in slices, and hashes each
// job. The comparison ignores the jobs that an entry has changed between the start of the
// first walk and the end of the last. The other jobs did not change, so all members must
// have the same hashes of them (decision 23).
//
// A member provides two hooks for this: Observe and View of [Replica].
//
// Start reading at check.go, one member's part, then session.go and verify.go.
package consistency

import (
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A Replica is a member whose queue is compared; see [cluster.Member].
type Replica interface {
	// Observe makes the member call f within turns: first with the last applied entry and
	// no changes, then with each applied entry and its changes. It replaces an earlier f.
	// A nil f stops the calls.
	Observe(f func(entry uint64, changes []engine.Change)) error

	// View calls f in a turn. The engine reflects the applied entries and, on a leader,
	// later changes. If settled is true, View returns when all these changes are
	// committed; until is then the last entry that the engine can reflect.
	View(settled bool, f func(*engine.Engine)) (until uint64, err error)

	// Time returns the cluster's time, and the cluster's time at which the engine's clock
	// showed 0.
	Time() (now, zero int64)

	// Failed returns a channel that is closed when the member fails or is closed.
	Failed() <-chan struct{}
}

// TimeLimit is the time limit for a check. A job that becomes due within this time counts
// as ready.
const TimeLimit = 10 * time.Minute

const (
	sliceBytes = 256 << 10             // approximate number of bytes of bodies that a turn hashes
	slicePause = time.Millisecond      // between two turns of a walk, so that the member's clients are served
	waitPause  = 10 * time.Millisecond // between two polls of the applied entries
	maxChanges = 8 << 20               // maximum number of recorded changes, 128 MiB
)

// A check is one member's part in a consistency check. Any goroutine can call its
// methods.
type check struct {
	m   Replica
	due int64 // cluster time; jobs that are due by then count as ready

	mu      sync.Mutex
	noting  bool
	walking bool
	from    uint64 // the changes of later entries are recorded
	applied uint64 // the changes of entries up to this one are recorded
	until   uint64 // the hashes reflect no later entry; 0 during the walk
	changes []change
	seen    []item
	err     error
}

// A change records that an entry changed a job, a pause or a named text.
type change struct{ entry, key uint64 }

// An item is the hash of a job, of the pause of a tube, or of the text of a name, as
// stored by a member.
type item struct{ key, hash uint64 }

// maxJob is larger than all job ids. The keys of other items are at least maxJob.
const maxJob = 1 << 63

// keyOf returns the key of the item that a change affects, or 0 if the item is not
// compared.
func keyOf(c *engine.Change) uint64 {
	switch c.Kind {
	case engine.TubePaused, engine.TubeGone, engine.PolicySet, engine.ScheduleSet, engine.ScheduleMark:
		h := fnv.New64a()
		h.Write([]byte(c.Tube))
		if c.Kind.IsNamed() {
			h.Write([]byte{byte(c.Kind)}) // the kind is not a byte of a tube name
		}
		return h.Sum64() | maxJob
	}
	return c.ID
}

// start starts a check. Jobs that are due by the cluster time due count as ready. If due
// is 0, start uses the time TimeLimit from now.
func start(m Replica, due int64) (*check, error) {
	if due == 0 {
		now, _ := m.Time()
		due = now + int64(TimeLimit)
	}
	c := &check{m: m, due: due}
	return c, m.Observe(c.note)
}

// errOver means that a check was ended.
var errOver = errors.New("the consistency check was abandoned, or another consistency check has started")

// end ends the check.
func (c *check) end() {
	_ = c.m.Observe(nil) // a failed member sends no changes
	c.fail(errOver)
}

// note records the changes of an entry. A deposed leader can apply entries twice.
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
		c.failLocked(errors.New("the member has received a snapshot during the consistency check; try again"))
		return
	}
	c.applied = entry
	for i := range changes {
		if changes[i].Kind != engine.LastID {
			c.changes = append(c.changes, change{entry, keyOf(&changes[i])})
			if mark, ok := changes[i].MarkOf(); ok {
				c.changes = append(c.changes, change{entry, keyOf(&mark)})
			}
		}
	}
	if len(c.changes) > maxChanges {
		c.failLocked(fmt.Errorf("more than %d changes during the consistency check; try again when the load is lower", maxChanges))
	}
}

func (c *check) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failLocked(err)
}

// failLocked is fail for callers that hold mu.
func (c *check) failLocked(err error) {
	if c.err == nil {
		c.err = err
	}
	c.changes, c.seen = nil, nil
}

// walk starts the walk unless it has already started. It first waits until the member has
// applied the entry from.
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

// errLeaderChanged means that the member has replaced its engine.
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
	var seen []item
	each := func(c *engine.Change) (bytes int) {
		if hash := hasher.Hash(c); hash != 0 {
			seen = append(seen, item{keyOf(c), hash})
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
		settled = over // the last turn only waits until all observed changes are committed
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

// pause gives the member time for other work. It returns an error if the check has ended.
func (c *check) pause(d time.Duration) error {
	select {
	case <-time.After(d):
	case <-c.m.Failed():
		return errOver
	}
	_, _, err := c.state()
	return err
}

// state returns the index of the last entry whose changes were recorded, and an upper
// bound on the index reflected in the hashes. The bound is 0 until the walk is complete.
func (c *check) state() (applied, until uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.applied, c.until, c.err
}

// sums returns the member's sums, excluding the items that the entries from+1 to until
// have changed. It returns nil until the member has applied the entry until.
func (c *check) sums(from, until uint64) (*Sums, error) {
	c.mu.Lock()
	changes, seen, err := c.changes, c.seen, c.err // the recorded elements are immutable
	ok := err == nil && c.until != 0 && c.applied >= until
	c.mu.Unlock()
	if !ok {
		return nil, err
	}
	changed := make(map[uint64]struct{})
	for _, k := range changes {
		if from < k.entry && k.entry <= until {
			changed[k.key] = struct{}{}
		}
	}
	s := &Sums{Changed: uint64(len(changed))}
	for _, i := range seen {
		if _, ok := changed[i.key]; ok {
			continue
		}
		s.Hash += i.hash
		if i.key < maxJob {
			s.Jobs++
		}
	}
	return s, nil
}
