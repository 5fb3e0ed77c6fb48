package journal

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"math"
	"syscall"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// All jobs are in memory. The journal rewrites itself if the current file was removed or
// truncated, if cleaning cannot read a segment, or if an operator requests it. It writes
// every job, the pauses, the policies and the last id to new segments, and then removes
// all older ones. That takes many turns. It also rewrites jobs that were not in the lost
// segment, because that segment might have contained their deletions.

// rewriteStep is the approximate number of bytes that a turn rewrites.
const rewriteStep = 512 << 10

// A rewrite writes the whole journal again. A job that is put or moved during the rewrite
// is already in the newer segments.
type rewrite struct {
	j     *Journal
	why   error  // the loss that caused it, or nil if an operator requested it
	first uint64 // first segment of the rewrite, or 0 before its start; older segments are removed
	next  int64  // cursor of engine.NextSnapshot; negative when all jobs are written
	retry int64  // after an error, time of the next attempt, on the engine's clock
}

// Rewrite starts a rewrite of the whole journal. The following turns execute it. It must
// be called within a turn. A rewrite in progress restarts, because a file that it has
// written might be lost.
func (j *Journal) Rewrite() {
	var why error
	if j.rewrite != nil {
		why = j.rewrite.why
	}
	j.rewrite = &rewrite{j: j, why: why}
}

// damaged starts a rewrite of the whole journal because durable records of a segment are
// lost.
func (j *Journal) damaged(segment uint64, err error) {
	j.health.set(lost, err)
	if w := j.rewrite; w == nil || w.why == nil || segment >= w.first {
		j.rewrite = &rewrite{j: j, why: err}
	}
}

// lostFile starts a rewrite of the whole journal if the error reports a lost file.
func (j *Journal) lostFile(err error) {
	if errors.Is(err, wal.ErrLost) {
		j.damaged(j.files.Current(), err)
	}
}

// unreadable reports whether an error of reading a segment means that its content is
// lost.
func unreadable(err error) bool {
	for _, is := range []error{wal.ErrCorrupt, errMissingJobs, fs.ErrNotExist, io.ErrUnexpectedEOF, syscall.EIO} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// step continues the rewrite and returns the time of the next step.
func (w *rewrite) step(now int64) (next int64) {
	if now < w.retry {
		return w.retry
	}
	j, err := w.j, w.advance(rewriteStep)
	if err == nil || errors.Is(err, errInFlight) {
		j.health.clear(uncleaned)
	} else {
		j.health.set(uncleaned, err)
	}
	if err != nil {
		w.retry = now + healPause
		return w.retry
	}
	if j.rewrite == nil {
		j.log.Info(texts[lost].ends)
	}
	return now + cleanPause
}

// advance rewrites about budget bytes, and removes the older segments at the end. After
// an error, it can be called again.
func (w *rewrite) advance(budget int64) error {
	j := w.j
	defer func() { j.cleaner.appended = 0 }()
	if w.first == 0 {
		at, err := j.appendWithSpare(&engine.Change{Kind: engine.LastID, ID: j.eng.LastID()})
		if err == nil { // the sync checks the current file
			err = cmp.Or(j.files.Flush(), j.files.Sync())
		}
		if err != nil {
			return err
		}
		w.first = at.Segment
		return nil // in the next turn, the older segments are sealed
	}
	for w.next >= 0 && budget > 0 {
		c, next, ok := j.eng.NextSnapshot(w.next)
		budget -= lookCost
		if ok && j.index.inFlight.committed(&c) && uint64(c.Segment) < w.first {
			if _, err := j.appendWithSpare(&c); err != nil {
				return err
			}
			budget -= weight(&c)
		}
		w.next = next
	}
	if w.next >= 0 {
		return nil
	}
	if j.opt.Member && j.index.hasBefore(w.first) { // some are jobs with a change in flight
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
	if at, removing := j.files.RemovalPending(); removing && !j.syncer.durable(at, j.dirty) {
		return nil
	}
	j.rewrite = nil
	j.health.errs[lost], j.health.errs[uncleaned] = nil, nil
	return nil
}

// finish executes the rest of the rewrite at once.
func (w *rewrite) finish() (err error) {
	j := w.j
	if j.files.Err() != nil {
		err = j.recover()
	}
	for err == nil && j.rewrite == w {
		if err = w.advance(math.MaxInt64); err == nil {
			err = cmp.Or(j.files.Flush(), j.files.Sync())
		}
	}
	if err == nil {
		j.log.Info(texts[lost].ends)
	}
	return err
}
