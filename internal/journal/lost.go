package journal

import (
	"errors"
	"math"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// Files of the journal can get lost under a running server: somebody removes
// them, or moves the directory away. Each job is in memory all the same. So the
// journal looks for its files now and then, and writes everything anew when one
// is gone: a lost segment may have held the deletion of a job in another one.

// lookPause is how long Housekeep waits between two looks.
const lookPause = int64(5 * time.Second)

// lookLimit is how many segments are looked for at a time, so that a look takes
// some milliseconds at most.
const lookLimit = 1000

// A lookout looks for the files in the background.
type lookout struct {
	background
	lost        wal.LostError // what the last look missed; of the goroutine until it has ended
	done        bool          // a look was begun whose result was not taken
	next        int64         // when to look, on the engine's clock
	mustRewrite bool          // all is to be written anew when the log is well again
}

// look takes the result of the last look, does what follows from it, and begins the next when it is time. It
// wakes nobody for that alone: who asks for the statistics makes a turn.
func (j *Journal) look(now int64) (next int64) {
	o := &j.lookout
	busy, _ := o.ended()
	if busy {
		return now + cleanPause
	}
	if o.done {
		o.done = false
		j.judge(o.lost)
	}
	if o.mustRewrite && j.files.Err() == nil {
		if err := j.rewriteAll(); err != nil {
			j.trouble.lost(j.log, err)
		} else {
			o.mustRewrite = false
		}
	}
	unsure := j.trouble.missing != nil || j.trouble.notSeen != nil
	switch {
	case now < o.next && unsure:
		return o.next
	case now < o.next:
		return engine.Never
	}
	o.next = now + lookPause
	limit := lookLimit
	if unsure {
		limit = math.MaxInt
	}
	look := j.files.Look(limit)
	o.done = true
	o.start(func() error {
		o.lost = look()
		return nil
	})
	return now + cleanPause
}

// judge decides what it means that a look missed files.
func (j *Journal) judge(lost wal.LostError) {
	lost = j.files.Confirm(lost)
	switch {
	case len(lost) == 0:
		j.trouble.found(j.log)
	case lost.Gone():
		j.trouble.lost(j.log, lost)
		// If the current segment is gone, the log has to heal first. The directory may
		// have been replaced, even by a copy: what is in it now does not count.
		j.lookout.mustRewrite = true
	default:
		j.trouble.notLooked(j.log, lost)
	}
}

// rewriteAll writes everything again and retires all older segments.
func (j *Journal) rewriteAll() error {
	first, err := j.rewrite(&engine.Change{Kind: engine.LastID, ID: j.eng.LastID()})
	if err != nil {
		return err
	}
	for c := range j.eng.Snapshots {
		at, err := j.rewrite(&c)
		if err != nil {
			return err
		}
		j.unmark(c.Mark)
		j.replaced(c.Mark, at)
		j.markJob(c.ID, at)
	}
	all := int64(math.MaxInt64)
	if _, err := j.copyOtherRecords(first.Segment-1, &all); err != nil {
		return err
	}
	delete(j.replacedBy, uint32(first.Segment-1))
	for {
		oldest, ok := j.files.Oldest()
		if !ok || oldest.Sequence >= first.Segment {
			break
		}
		if err := j.files.RemoveOldest(); err != nil {
			return err
		}
		delete(j.replacedBy, uint32(oldest.Sequence))
	}
	j.cleaner.appended = 0
	j.bytes = j.files.Stats().Bytes
	return nil
}

// endLook waits for the look that is under way. What it found is only needed for
// the lock, which it may have taken anew: another look follows.
func (j *Journal) endLook() {
	if j.lookout.wait(); j.lookout.done {
		j.lookout.done = false
		j.files.Confirm(j.lookout.lost)
	}
}

// lookBeforeClose looks for all files, and writes everything anew if some are lost.
func (j *Journal) lookBeforeClose() error {
	for try := 0; ; try++ {
		if err := j.files.Flush(); err != nil {
			return err
		}
		lost := j.files.Confirm(j.files.Look(math.MaxInt)())
		if len(lost) == 0 {
			return nil
		}
		switch {
		case try == 3 || errors.Is(lost, vfs.ErrLocked):
			return lost
		case !lost.Gone():
			continue // it may have been an error that passes
		}
		if j.files.Err() != nil {
			if err := j.recover(); err != nil {
				return errors.Join(lost, err)
			}
		}
		if err := j.rewriteAll(); err != nil {
			return errors.Join(lost, err)
		}
		j.log.Warn("files of the journal were lost: all jobs were written anew", "err", error(lost))
	}
}
