package cluster

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/ledger"
)

// A told records the replies that clients received.
type told struct {
	asked *ledger.Ledger[string]   // keyed by keyOf of the jobs' bodies, which are all different
	puts  int                      // number of puts sent
	due   map[uint64]time.Duration // time before which an acknowledged job must not become ready, by id

	term   uint64        // the highest term in which a worker got a reply
	termAt time.Duration // time of the first such reply
	wrong  error         // the first error in a message or a term
}

// keyOf returns the key of a job in the ledger: its body, or a short form of a long body.
func keyOf(body []byte) string {
	if len(body) > 64 {
		return fmt.Sprintf("%x, %s", sha256.Sum256(body), body[len(body)-16:])
	}
	return string(body)
}

// put puts a job on a member, and reports whether the put was acknowledged.
func (sim *simulation) put(m *Member, tube string, spec engine.Spec, text string) (id uint64, err error) {
	sim.mu.Lock()
	sim.puts++
	body := fmt.Appendf(nil, "%s, put %d", text, sim.puts)
	sim.mu.Unlock()
	outcome, began := engine.Failed, time.Since(sim.start)
	sim.asked.Put(keyOf(body))
	err = m.Broker().Call(func(e *engine.Engine, now int64) {
		id, outcome = e.PutInto(now, []byte(tube), spec, body)
	})
	if err == nil && outcome != engine.OK {
		return 0, fmt.Errorf("the put is refused: %d", outcome)
	}
	if err == nil {
		sim.asked.Inserted(keyOf(body), id)
		sim.mu.Lock()
		defer sim.mu.Unlock()
		if tube == laterTube {
			sim.due[id] = began + time.Duration(spec.Delay)*time.Second
		}
	}
	return id, err
}

// mustPut puts n jobs on a member, or on the leader if m is nil. All puts must be
// acknowledged.
func (sim *simulation) mustPut(m *Member, n int, text string) {
	sim.t.Helper()
	for range n {
		to := m
		if to == nil {
			to = sim.leader()
		}
		_, err := sim.put(to, "mail", engine.Spec{TTR: 60}, text)
		sim.must(err)
	}
}

// answered records the term in which a worker's request was answered. A request that
// starts later must not be answered in an earlier term.
func (l *told) answered(term uint64, began, now time.Duration) {
	switch {
	case term > l.term:
		l.term, l.termAt = term, now
	case term < l.term && began > l.termAt:
		l.wrong = fmt.Errorf("the command sent at %v was answered in term %d, and at %v a command was answered in term %d", began, term, l.termAt, l.term)
	}
}

// laterTube has delayed jobs that no client kicks or reserves.
const laterTube = "later"

// preload puts enough jobs that a walk takes several turns.
func (sim *simulation) preload(jobs int) {
	const turn = 400
	for n := 0; n < jobs; n += turn {
		sim.must(sim.leader().Broker().Call(func(e *engine.Engine, now int64) {
			for i := range turn {
				sim.putOld(e, now, "old", engine.Spec{TTR: 60}, n+i)
			}
		}))
	}
}

// putOld puts a job at a time at which no leader can be deposed before it acknowledges
// the put.
func (sim *simulation) putOld(e *engine.Engine, now int64, tube string, spec engine.Spec, n int) {
	body := fmt.Sprintf("old job %d", n)
	sim.asked.Put(body)
	id, _ := e.PutInto(now, []byte(tube), spec, []byte(body))
	sim.asked.Inserted(body, id)
}

// behind is the maximum lag of a member's clock. While the leader's messages arrive late,
// which lasts a few seconds, the member's clock runs a sixteenth slower.
const behind = 250 * time.Millisecond

// checkDelays checks that no delay has ended too early.
func (sim *simulation) checkDelays() {
	l := sim.leader()
	sim.mu.Lock()
	due := maps.Clone(sim.due)
	sim.mu.Unlock()
	var early string
	l.Broker().View(func(e *engine.Engine, _ int64) {
		for id, at := range due {
			if c, ok := e.Snapshot(id); ok && c.State == engine.Ready && time.Since(sim.start) < at-behind-sim.lagged {
				early = fmt.Sprintf("job %d is ready at member %d %v too soon", id, l.opt.Self.ID, at-time.Since(sim.start))
			}
		}
	})
	if early != "" {
		sim.fatalf("%s", early)
	}
}

// acknowledged returns the number of acknowledged puts.
func (sim *simulation) acknowledged() int {
	puts, _ := sim.asked.Acknowledged()
	return puts
}

// whatIsWrong returns the errors that were found.
func (sim *simulation) whatIsWrong() error {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return errors.Join(sim.wrong, sim.asked.Err())
}

// delete deletes some job on a member.
func (sim *simulation) delete(m *Member) error {
	var key string
	err := m.Broker().Call(func(e *engine.Engine, _ int64) {
		if c, _, ok := e.NextSnapshot(0); ok && e.DeleteJob(c.ID) == engine.OK {
			key = keyOf(c.Body)
			sim.asked.Delete(key)
		}
	})
	if err == nil && key != "" {
		sim.asked.Deleted(key)
	}
	return err
}

// audit waits until the queues of all running members are equal, and compares them with
// the ledger.
func (sim *simulation) audit() {
	sim.t.Helper()
	sim.until("all have applied what is committed", func() bool {
		synctest.Wait()
		var s Status
		l := sim.leader()
		if !l.inLoop(func() { s = l.raft.status() }) { // the result of Status can be outdated
			return false
		}
		for _, m := range sim.nodes {
			if m.member != nil && m.applied() != s.Commit {
				return false
			}
		}
		return true
	})
	want := sim.first().digest()
	for _, m := range sim.nodes {
		if m.member != nil && m.digest() != want {
			sim.fatalf("member %d (+) has another queue than the first one (-):\n%s", m.id, cmp.Diff(sim.first().jobs(), m.jobs()))
		}
	}
	for _, m := range sim.nodes {
		if m.member != nil {
			m.check()
		}
	}
}

// first returns the first running node.
func (sim *simulation) first() *node {
	return sim.nodes[slices.IndexFunc(sim.nodes, func(m *node) bool { return m.member != nil })]
}

func (m *node) jobs() map[uint64]string {
	jobs := map[uint64]string{}
	m.member.Broker().View(func(e *engine.Engine, _ int64) {
		for c := range e.Snapshots {
			epoch := m.member.clock.zero
			jobs[c.ID] = fmt.Sprintf("%d in %s, pri %d, delay %d, created %d, body %q", c.ID, c.Tube, c.Pri, c.Delay, c.Created+epoch, c.Body)
		}
	})
	return jobs
}

func (m *node) applied() (index uint64) {
	m.member.Broker().View(func(*engine.Engine, int64) { index = m.member.turn.applied.Index })
	return index
}

func (m *node) digest() (sum uint64) {
	member := m.member
	later := member.clock.time() + int64(1000*time.Hour) // at that time, all delayed jobs count as ready
	member.Broker().View(func(e *engine.Engine, _ int64) { sum = e.Digest(later-member.clock.zero, member.clock.zero) })
	return sum
}

// check compares the queue of a member with the ledger.
func (m *node) check() {
	sim := m.sim
	sim.t.Helper()
	var err error
	m.member.Broker().View(func(e *engine.Engine, _ int64) {
		err = errors.Join(e.Check(), m.member.turn.journal.Check())
		if n := e.Stats().Reserved; n > 0 && m.member.turn.epoch == 0 {
			err = errors.Join(err, fmt.Errorf("it does not decide, and has %d jobs reserved", n))
		}
		err = errors.Join(err, sim.whatIsWrong(), sim.asked.Check(func(yield func(string, uint64) bool) {
			for c := range e.Snapshots {
				if !yield(keyOf(c.Body), c.ID) {
					return
				}
			}
		}, sim.asked.Now()))
	})
	if err != nil {
		sim.fatalf("member %d: %v", m.id, err)
	}
}
