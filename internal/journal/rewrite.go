package journal

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"math"
	"syscall"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// All jobs are in memory. So if the file that is written was lost or cut, if cleaning
// cannot read a segment, or if an operator asks, the journal is rewritten as a whole:
// every job, the pauses, the policies and the last id go to new segments, and then all
// older ones are removed. That takes many turns. Jobs that were not in the lost segment
// are rewritten, too: their deletions may have been there.

// rewriteStep is how many bytes are rewritten in a turn, about.
const rewriteStep = 512 << 10

// A rewriting rewrites everything. A job that is put or moved meanwhile is in the newer
// segments already.
type rewriting struct {
	j     *Journal
	why   error  // what was lost; nil: an operator asked
	first uint64 // the segment in which it began; older ones go. 0: it has not begun
	next  int64  // the place of the next job; see engine.NextSnapshot. Negative: all are written
	retry int64  // after an error: when to go on, on the engine's clock
}

// Rewrite begins to rewrite the whole journal, in the turns that follow. It must be
// called within a turn.
func (j *Journal) Rewrite() {
	if j.rewriting == nil {
		j.rewriting = &rewriting{j: j}
	}
}

// damaged begins to rewrite the whole journal, because records of a segment are lost
// which were durable.
func (j *Journal) damaged(segment uint64, err error) {
	j.health.has(lost, err)
	if w := j.rewriting; w == nil || w.why == nil || segment >= w.first {
		j.rewriting = &rewriting{j: j, why: err}
	}
}

// lostFile begins to rewrite the whole journal, if an error says that a file is lost.
func (j *Journal) lostFile(err error) {
	if errors.Is(err, wal.ErrLost) {
		j.damaged(j.files.Current(), err)
	}
}

// unreadable reports whether an error of reading a segment is about what is in it.
func unreadable(err error) bool {
	for _, is := range []error{wal.ErrCorrupt, errMissingJobs, record.ErrInvalid, fs.ErrNotExist, io.ErrUnexpectedEOF, syscall.EIO} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// step continues to rewrite everything, and returns when to go on.
func (w *rewriting) step(now int64) (next int64) {
	if now < w.retry {
		return w.retry
	}
	j, err := w.j, w.advance(rewriteStep)
	if err == nil || errors.Is(err, errInFlight) {
		j.health.ended(uncleaned)
	} else {
		j.health.has(uncleaned, err)
	}
	if err != nil {
		w.retry = now + healPause
		return w.retry
	}
	return now + cleanPause
}

// advance rewrites about budget bytes, and removes the older segments at the end.
// After an error it can go on.
func (w *rewriting) advance(budget int64) error {
	j := w.j
	defer func() { j.cleaner.appended = 0 }()
	if w.first == 0 {
		at, err := j.appendWithStandby(&engine.Change{Kind: engine.LastID, ID: j.eng.LastID()})
		if err == nil { // the sync looks at the file that is written
			err = cmp.Or(j.files.Flush(), j.files.Sync())
		}
		if err != nil {
			return err
		}
		w.first = at.Segment
		return nil // the next turn finds the older ones sealed
	}
	for w.next >= 0 && budget > 0 {
		c, next, ok := j.eng.NextSnapshot(w.next)
		budget -= lookCost
		if ok && j.index.inFlight.committed(&c) && uint64(c.Segment) < w.first {
			if _, err := j.appendWithStandby(&c); err != nil {
				return err
			}
			budget -= weight(&c)
		}
		w.next = next
	}
	if w.next >= 0 {
		return nil
	}
	if j.opt.Member && j.index.hasBefore(w.first) { // of jobs with a fact in flight
		w.next = 0
		return errInFlight
	}
	if done, err := j.cleaner.copyOtherRecords(w.first-1, &budget); err != nil || !done {
		return err
	}
	for oldest, ok := j.files.Oldest(); ok && oldest.Sequence < w.first; oldest, ok = j.files.Oldest() {
		if budget <= 0 {
			return nil
		}
		if err := j.cleaner.removeOldest(); err != nil {
			return err
		}
		budget -= removalCost
	}
	if at, removing := j.files.RemovalPending(); removing && !j.syncing.durable(at, j.dirty) {
		return nil
	}
	j.rewriting = nil
	j.health.errs[lost], j.health.errs[uncleaned] = nil, nil
	j.log.Info(texts[lost].ends)
	return nil
}

// finish does all that advance does in slices.
func (w *rewriting) finish() (err error) {
	j := w.j
	if j.files.Err() != nil {
		err = j.recover()
	}
	for err == nil && j.rewriting == w {
		if err = w.advance(math.MaxInt64); err == nil {
			err = cmp.Or(j.files.Flush(), j.files.Sync())
		}
	}
	return err
}
