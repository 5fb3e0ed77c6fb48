package journal

import (
	"cmp"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// Options configures a Journal. With the zero value, each change waits for a sync.
type Options struct {
	// SegmentSize is the size of a segment in bytes. Zero means wal.DefaultSegmentSize.
	SegmentSize int64

	// Sync is the maximum time that a change waits for its sync in the background. Zero
	// makes Flush request a call of Sync. A negative value delays a sync until an eighth
	// of a segment is not synced.
	Sync time.Duration

	// Epoch is the time, in nanoseconds since 1970, at which the engine's clock is 0.
	Epoch int64

	// Member specifies a cluster member's journal, which contains only committed changes,
	// from AppendCommitted. Sync should be positive, because no client waits for a sync.
	Member bool

	// Logger receives messages about damage, full disks and failures. If it is nil, no
	// messages are logged.
	Logger *slog.Logger

	// Progress is called repeatedly while Open reads. It can be nil.
	Progress func(done, total int64)
}

// A Journal is the log of one engine.
type Journal struct {
	// Constant after Open.
	opt   Options
	log   *slog.Logger
	fs    vfs.FS
	dir   string
	eng   *engine.Engine
	files *wal.Log

	// Owned by the turn.
	buf             []byte          // scratch
	dirty           bool            // a record was appended since the last Flush
	unflushed       int64           // bytes appended since the last Flush
	bytes           int64           // approximate size of the records in all segments
	index           index           // J1, J2, J5
	space           space           // J3
	persistentState persistentState // J4
	lastID          uint64          // segment of the last record of the last id
	applied         applied         // progress of a cluster member
	appended        int             // number of changes of AppendCommitted's entry that are already appended
	now             int64           // time of the last Housekeep on the engine's clock; on a member, time of the last entry
	cleaner         cleaner
	rewrite         *rewrite // the rewrite in progress, or nil
	health          health
	stats           Stats

	syncer   syncer
	preparer preparer

	// target is the position that Sync makes durable. The turn writes it; the syncing
	// goroutine reads it.
	target struct {
		sync.Mutex
		wal.Target
	}
}

// Stats describes a journal.
type Stats struct {
	wal.Stats
	Written  uint64 // records since Open, including migrated ones
	Migrated uint64 // records that cleaning copied
	Live     int64  // estimated size of all jobs after a rewrite, in bytes
	Err      error  // the error that refuses changes, or nil
	Refusal  error  // the error that refuses changes or new jobs, or nil
	Health   error  // the worst condition, including Err, or nil
}

// New returns a journal whose Admit can be passed to an engine. Open must be called
// before the engine's first change.
func New(opt Options) *Journal {
	j := &Journal{
		opt:             opt,
		log:             cmp.Or(opt.Logger, slog.New(slog.DiscardHandler)),
		persistentState: newPersistentState(),
		index:           index{inFlight: inFlight{jobs: make(map[uint64]pendingJob)}, jobsIn: make(map[uint32]int)},
	}
	j.opt.SegmentSize = cmp.Or(opt.SegmentSize, wal.DefaultSegmentSize)
	j.health.log, j.cleaner.j = j.log, j
	return j
}

// Flush implements broker.Log.
func (j *Journal) Flush() (durable bool, err error) {
	if !j.dirty {
		return true, nil
	}
	j.dirty = false
	if err := j.files.Flush(); err != nil {
		j.health.set(broken, err)
		return false, fmt.Errorf("journal: %w", err)
	}
	j.syncer.unsynced += max(j.unflushed, 1) // counts even if there are only removal records, which unflushed omits
	j.unflushed = 0
	j.setTarget()
	return j.opt.Sync != 0, nil
}

func (j *Journal) setTarget() {
	j.target.Lock()
	defer j.target.Unlock()
	j.target.Target = j.files.Target()
}

// Sync implements broker.Log.
func (j *Journal) Sync() error {
	j.target.Lock()
	target := j.target.Target
	j.target.Unlock()
	return wrap(target.Sync())
}

// Housekeep implements broker.Log.
func (j *Journal) Housekeep(now int64) (next int64) {
	if !j.opt.Member {
		j.now = now
	}
	next = j.syncer.step(now)
	if j.files.Err() != nil {
		return j.heal(now)
	}
	if !j.appendGone() {
		next = min(next, now+healPause)
	}
	next = min(next, j.cleaner.step(now))
	next = min(next, j.syncer.awaitRemovals(now, j.dirty), j.space.retryFill(now))
	if j.dirty {
		next = min(next, now+cleanPause) // Flush follows
	}
	return min(next, j.preparer.step(now))
}

// Stats returns the statistics of the journal. It must be called within a turn.
func (j *Journal) Stats() Stats {
	st := j.stats
	st.Stats = j.files.Stats()
	st.Live = j.index.live
	st.Err = j.files.Err()
	st.Refusal = cmp.Or(j.health.err(broken), j.health.err(full), st.Err)
	st.Health = cmp.Or(j.health.worst(), st.Err)
	return st
}

// Close implements broker.Log. It also writes the counters of jobs that changed without a
// record, unless the journal is a member's. A member's journal discards the changes in
// flight: Open reads the committed state into another engine.
func (j *Journal) Close() error {
	j.preparer.wait()
	j.syncer.wait()
	err := cmp.Or(j.files.Err(), j.finish())
	if err != nil {
		j.lostFile(err)
		if err = j.recover(); err == nil { // last chance
			err = j.finish()
		}
	}
	if err == nil && j.rewrite != nil && j.rewrite.why != nil {
		err = j.rewrite.finish()
	}
	if e := j.files.Close(); err == nil {
		err = e
	}
	j.eng, j.index.eng = nil, nil // watchers keep references to the journal
	return wrap(err)
}

// finish appends the remaining changes and makes all of them durable.
func (j *Journal) finish() error {
	for len(j.persistentState.gone) > 0 && j.appendGone() {
	}
	if !j.opt.Member {
		if err := j.appendUnlogged(); err != nil {
			return err
		}
	}
	return j.files.Seal()
}

// appendUnlogged writes the state of each job that was reserved or timed out after its
// last record. If there is no space, only counters are lost.
func (j *Journal) appendUnlogged() error {
	for c := range j.eng.Unlogged {
		if _, err := j.append(&c); err != nil {
			if j.files.Err() != nil {
				return err
			}
			return nil
		}
	}
	return nil
}
