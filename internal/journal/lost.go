package journal

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// Files of the journal can get lost under a running server: somebody removes
// them, or moves the directory away. Each job is in memory all the same. So the
// journal looks for its files now and then, and writes everything anew when one
// is gone: a lost segment may have held the deletion of a job in another one. That
// takes many turns. Until it is done, and all older segments are removed, the health
// of the journal tells which files are lost.

// lookPause is how long Housekeep waits between two looks.
const lookPause = int64(5 * time.Second)

// lookLimit is how many segments one look is for. It then takes a few milliseconds at
// most.
const lookLimit = 1000

// A lookout looks for the files in the background.
type lookout struct {
	background
	lost wal.LostError // what the last look missed; of the goroutine until it has ended
	done bool          // a look was begun, and its result was not used yet
	next int64         // when to look, on the engine's clock

	rewriting *rewriting // nil if nothing has to be written anew
}

// A rewriting is the progress of writing everything anew, while other changes go on.
// A job that is put or moved meanwhile is in the newer segments already.
type rewriting struct {
	first uint64 // the segment in which it began; older ones go. 0: it has not begun
	place int64  // of the next job; see engine.NextSnapshot. Negative: all are written
	retry int64  // after an error: when to go on, on the engine's clock
}

// rewriteStep is how many bytes are written anew in a turn, about.
const rewriteStep = 512 << 10

// look acts on the result of the last look, continues to write everything anew if
// that has begun, and begins the next look when it is time. A look alone needs no
// turn: next is engine.Never if all is well.
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
	return min(j.rewriteTurn(now), j.lookNext(now))
}

// rewriteTurn continues to write everything anew, if that has begun. It returns when to
// go on.
func (j *Journal) rewriteTurn(now int64) (next int64) {
	next = engine.Never
	switch w := j.lookout.rewriting; {
	case w == nil || j.files.Err() != nil:
	case now < w.retry:
		next = w.retry
	default:
		done, err := j.rewriteSome(rewriteStep)
		switch {
		case err != nil:
			j.trouble.lost(j.log, err)
			w.retry = now + healPause
			next = w.retry
		case !done:
			next = now + cleanPause
		default:
			j.lookout.next = now // to see that all is well
		}
	}
	return next
}

// lookNext begins the next look when it is time, and returns when that is, if it
// matters.
func (j *Journal) lookNext(now int64) (next int64) {
	o := &j.lookout
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
	case len(lost) == 0 && j.lookout.rewriting == nil:
		j.trouble.found(j.log)
	case len(lost) == 0: // what is there now is not what was: see mustRewrite
	case lost.Gone():
		j.trouble.lost(j.log, lost)
		j.mustRewrite(lost)
	default:
		j.trouble.notLooked(j.log, lost)
	}
}

// mustRewrite makes sure that everything will be written anew which was in lost
// files. If the current segment is gone, the log has to heal first. The directory may
// have been replaced, even by a copy: what is in it now does not count.
func (j *Journal) mustRewrite(lost wal.LostError) {
	o := &j.lookout
	if o.rewriting == nil || slices.ContainsFunc(lost, func(f wal.Lost) bool { return f.Sequence >= o.rewriting.first }) {
		o.rewriting = new(rewriting)
	}
}

// rewriteSome writes about budget bytes anew, and removes the older segments at the
// end. It reports whether all is done. After an error it can go on.
func (j *Journal) rewriteSome(budget int64) (done bool, err error) {
	defer func() { j.cleaner.appended = 0 }()
	w := j.lookout.rewriting
	if w.first == 0 {
		at, err := j.rewrite(&engine.Change{Kind: engine.LastID, ID: j.eng.LastID()})
		if err != nil {
			return false, err
		}
		w.first = at.Segment
	}
	if err := j.rewriteJobs(w, &budget); err != nil || w.place >= 0 {
		return false, err
	}
	if done, err := j.copyOtherRecords(w.first-1, &budget); err != nil || !done {
		return false, err
	}
	for oldest, ok := j.files.Oldest(); ok && oldest.Sequence < w.first; oldest, ok = j.files.Oldest() {
		if budget <= 0 {
			return false, nil
		}
		if err := j.removeOldest(oldest); err != nil {
			return false, err
		}
		budget -= removalCost
	}
	delete(j.replacedBy, uint32(w.first-1))
	j.lookout.rewriting, j.cleaner.stuck = nil, false
	return true, nil
}

// rewriteJobs writes jobs anew that are in the older segments. At the end w.place is
// negative.
func (j *Journal) rewriteJobs(w *rewriting, budget *int64) error {
	for w.place >= 0 && *budget > 0 {
		c, next, ok := j.eng.NextSnapshot(w.place)
		switch {
		case !ok, uint64(c.Mark) >= w.first:
			*budget -= lookCost
		default:
			if err := j.rewriteJob(&c); err != nil {
				return err
			}
			*budget -= weight(&c)
		}
		w.place = next
	}
	return nil
}

// endLook waits for the look that is under way, and acts on its result. To look again
// would not do: a file that was cut short has its length again when the log has healed.
func (j *Journal) endLook() {
	if j.lookout.wait(); j.lookout.done {
		j.lookout.done = false
		j.judge(j.lookout.lost)
	}
}

// lookBeforeClose looks for all files, and writes everything anew if some are lost, or
// were.
func (j *Journal) lookBeforeClose() error {
	for try := 0; ; try++ {
		if err := j.files.Flush(); err != nil {
			return err
		}
		lost := j.files.Confirm(j.files.Look(math.MaxInt)())
		switch {
		case len(lost) == 0 && j.lookout.rewriting == nil:
			return nil
		case len(lost) == 0:
		case try == 3 || errors.Is(lost, vfs.ErrLocked):
			return lost
		case !lost.Gone():
			continue // it may have been an error that passes
		default:
			j.trouble.lost(j.log, lost)
			j.mustRewrite(lost)
		}
		if err := j.rewriteAll(); err != nil {
			return errors.Join(j.trouble.missing, err)
		}
		j.log.Warn("files of the journal were lost: all jobs were written anew", "err", j.trouble.missing)
	}
}

// rewriteAll does all that rewriteSome does in slices.
func (j *Journal) rewriteAll() error {
	if j.files.Err() != nil {
		if err := j.recover(); err != nil {
			return err
		}
	}
	_, err := j.rewriteSome(math.MaxInt64)
	return err
}
