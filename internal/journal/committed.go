package journal

import (
	"errors"
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// The journal of a cluster member contains only committed changes. It is the snapshot for
// the cluster's log: an Applied record states that all changes up to an entry of the log
// precede it. After a start, the member appends the changes after the last such record
// again. The journal can already contain some of them. This is correct, because each
// change is complete and the last change of a job counts (see engine.Change).

// ErrNotExecuted reports a change that was committed in this member's epoch but not
// executed by its engine. It is a bug, not a disk error.
var ErrNotExecuted = errors.New("journal: committed change was not executed by this leader")

// An Applied identifies an entry of the cluster's log. A journal contains the changes of
// that entry and of all earlier ones.
type Applied = record.Applied

// applied is the progress of a member's journal.
type applied struct {
	last    Applied
	segment uint64 // segment of its last record, or 0 if it is unknown or there is none
	durable Applied
	next    appliedAt // the entry that becomes durable next, or zero if all are durable
	newest  appliedAt // entry of the last record
}

type appliedAt struct {
	Applied
	at wal.Pos
}

// AppendCommitted appends the changes of an entry that the cluster has committed, and an
// Applied record for the entry. It does not wait for a sync: the entry must stay in the
// cluster's log until Synced returns it. On the leader, the changes are the oldest ones
// that Stage accepted, and are no longer in flight. On other members, AppendCommitted
// also restores them in the engine. If at is zero, it writes no Applied record.
//
// After an error other than ErrNotExecuted, only part of the changes was appended. The
// caller must repeat the call with the same entry in a later turn, before any other
// entry; Housekeep tries to heal in between.
func (j *Journal) AppendCommitted(changes []engine.Change, at Applied) error {
	for ; j.appended < len(changes); j.appended++ {
		appendOne := j.appendForeign
		if len(j.index.inFlight.reserved) > 0 {
			appendOne = j.appendOwn
		}
		if err := appendOne(&changes[j.appended]); err != nil {
			return err
		}
	}
	if at != (Applied{}) {
		c := at.Change()
		if _, err := j.appendWithSpare(&c); err != nil {
			return err
		}
		j.now = max(j.now, at.Stamp-j.opt.Epoch)
	}
	j.appended = 0
	return nil
}

// appendOwn appends the oldest change in flight.
func (j *Journal) appendOwn(c *engine.Change) error {
	in := &j.index.inFlight
	if isJob(c.Kind) {
		f, ok := in.jobs[c.ID]
		if !ok {
			return fmt.Errorf("%w: job %d", ErrNotExecuted, c.ID)
		}
		c.Segment, c.Slot = f.segment, f.slot
	}
	j.files.Unreserve(in.reserved[0])
	if _, err := j.appendWithSpare(c); err != nil {
		if j.files.Reserve(in.reserved[0]) != nil {
			in.reserved[0] = 0
		}
		return err
	}
	in.reserved = in.reserved[1:]
	if isJob(c.Kind) {
		j.index.appendedChange(c)
	}
	return nil
}

// appendForeign appends a change that another member executed, and restores it. This
// member has not admitted it: if there is no space for a job, the member must wait until
// there is.
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
		j.space.deletions.release(j.files)
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
			_ = j.space.deletions.fill(j.files) // if there is no space, Housekeep retries
		}
	case engine.JobDeleted:
		if there {
			j.index.live -= weight(&before)
			j.index.removeFrom(before.Segment)
		}
	}
	j.indexRecord(c, at)
	return nil
}

// writeForeign writes the record of a change. It fails for lack of space only if the
// record is a job's: a full disk must not prevent a deletion.
func (j *Journal) writeForeign(c *engine.Change) (at wal.Pos, err error) {
	write := func() error {
		at, err = j.write(c)
		return err
	}
	if c.Kind != engine.JobPut && c.Kind != engine.JobMoved {
		err = j.space.withSpare(write)
	} else if write() != nil && j.files.Err() == nil {
		j.health.noRoom(err, costOf(c))
	}
	return at, err
}

// Applied returns the last entry whose changes were all appended.
func (j *Journal) Applied() Applied { return j.applied.last }

// Synced returns an entry up to which all changes are durable. The cluster's log can be
// cut there.
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

// record updates a for the record of an Applied.
func (a *applied) record(c *engine.Change, at wal.Pos) {
	a.last, _ = record.DecodeApplied(c.Body)
	a.segment = at.Segment
	a.newest = appliedAt{a.last, at}
	if a.next == (appliedAt{}) {
		a.next = a.newest
	}
}

// healed records that all appended changes are durable, at unknown positions.
func (a *applied) healed() {
	*a = applied{last: a.last, durable: a.last}
}
