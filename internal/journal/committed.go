package journal

import (
	"errors"
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// The journal of a member of a cluster has only what the members have agreed on. It is
// the snapshot that belongs to the cluster's log: a record says up to which entry of the
// log all facts come before it. What comes after the last such record is appended again,
// and that is right although some of it is there already: a fact stands alone, and the
// last one of a job decides (see engine.Change).

// ErrNotExecuted means that what is committed was not executed here, though it should
// have been: nothing that is done about the disk mends that.
var ErrNotExecuted = errors.New("journal: a fact is committed in this member's leadership epoch, and was not executed here")

// Applied says up to which entry a journal has every fact.
type Applied = record.Applied

// applied is how far the journal of a member is.
type applied struct {
	last    Applied
	segment uint64 // of the last record of it; 0: not known, or none
	durable Applied
	next    appliedAt // becomes durable next; zero: all are
	newest  appliedAt // the last record
}

type appliedAt struct {
	Applied
	at wal.Pos
}

// AppendCommitted appends the facts of an entry that the cluster has committed, and that
// the journal has them. It waits for no sync: the entry must stay in the cluster's log
// until Synced has it. At the leader the facts are those that Executed has taken, and are
// not in flight any more. Otherwise they are also restored in the engine. With the zero
// Applied it says nothing of an entry.
//
// After an error, unless it is ErrNotExecuted, a part of the facts was appended. Then the
// call must be repeated with the same entry in a later turn, before any other; meanwhile
// Housekeep tries to heal.
func (j *Journal) AppendCommitted(changes []engine.Change, at Applied) error {
	for ; j.appended < len(changes); j.appended++ {
		if err := j.appendFact(&changes[j.appended]); err != nil {
			return err
		}
	}
	if at != (Applied{}) {
		c := at.Change()
		if _, err := j.appendWithStandby(&c); err != nil {
			return err
		}
		j.now = max(j.now, at.Stamp-j.opt.Epoch)
	}
	j.appended = 0
	return nil
}

func (j *Journal) appendFact(c *engine.Change) error {
	if len(j.index.inFlight.reserved) > 0 {
		return j.appendOwn(c)
	}
	return j.appendForeign(c)
}

// appendOwn appends the fact that is in flight for the longest time.
func (j *Journal) appendOwn(c *engine.Change) error {
	in := &j.index.inFlight
	if isJob(c.Kind) {
		f, ok := in.jobs[c.ID]
		if !ok {
			return fmt.Errorf("%w: that of job %d", ErrNotExecuted, c.ID)
		}
		c.Segment, c.Slot = f.segment, f.slot
	}
	j.files.Unreserve(in.reserved[0])
	if _, err := j.appendWithStandby(c); err != nil {
		if j.files.Reserve(in.reserved[0]) != nil {
			in.reserved[0] = 0
		}
		return err
	}
	in.reserved = in.reserved[1:]
	if isJob(c.Kind) {
		j.index.landed(c)
	}
	return nil
}

// appendForeign appends a fact that another member has executed, and restores it. Nobody
// has admitted it: if there is no room for a job, this member has to wait until there is.
func (j *Journal) appendForeign(c *engine.Change) error {
	var before engine.Change
	there := false
	if isJob(c.Kind) {
		before, there = j.eng.Snapshot(c.ID)
		before.Body = nil
		c.Segment = before.Segment
	}
	if c.Kind == engine.JobDeleted && there {
		j.space.deletions.want--
		j.space.deletions.giveUp(j.files)
	}
	at, err := j.writeForeign(c)
	if err != nil {
		if c.Kind == engine.JobDeleted && there {
			j.space.deletions.want++
		}
		return err
	}
	j.eng.Restore(*c)
	switch c.Kind {
	case engine.JobPut, engine.JobMoved:
		now, _ := j.eng.Snapshot(c.ID)
		c.Slot = now.Slot
		j.index.live += weight(&now)
		if there {
			j.index.live -= weight(&before)
		} else {
			j.space.deletions.want++
			_ = j.space.deletions.fill(j.files) // without room it is retried later
		}
	case engine.JobDeleted:
		if there {
			j.index.live -= weight(&before)
			j.index.uncount(before.Segment)
		}
	}
	j.note(c, at)
	return nil
}

// writeForeign writes the record of a fact. Only jobs need room that may not be there: a
// full disk must not keep a deletion from the records before it.
func (j *Journal) writeForeign(c *engine.Change) (at wal.Pos, err error) {
	write := func() error {
		at, err = j.write(c)
		return err
	}
	if c.Kind != engine.JobPut && c.Kind != engine.JobMoved {
		err = j.space.withStandby(write)
	} else if write() != nil && j.files.Err() == nil {
		j.health.noRoom(err, cost(c.Kind, len(c.Tube), len(c.Body)))
	}
	return at, err
}

// Applied returns up to which entry all facts were appended.
func (j *Journal) Applied() Applied { return j.applied.last }

// Synced returns up to which entry all facts are durable, or an earlier one. The
// cluster's log may be cut there.
func (j *Journal) Synced() Applied {
	a, durable := &j.applied, j.files.Durable()
	for a.next != (appliedAt{}) && a.next.at.Compare(durable) < 0 {
		a.durable = a.next.Applied
		if a.next = a.newest; a.next.Applied == a.durable {
			a.next = appliedAt{}
		}
	}
	return a.durable
}

// noted notes where the record of an Applied is.
func (a *applied) noted(c *engine.Change, at wal.Pos) {
	a.last, _ = record.DecodeApplied(c.Body)
	a.segment = at.Segment
	a.newest = appliedAt{a.last, at}
	if a.next == (appliedAt{}) {
		a.next = a.newest
	}
}

// healed notes that all that was appended is durable, and that it is not known where.
func (a *applied) healed() {
	*a = applied{last: a.last, durable: a.last}
}
