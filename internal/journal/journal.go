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

// Options of a Journal. The zero value promises a sync.
type Options struct {
	// SegmentSize is the size of a segment in bytes; 0: wal.DefaultSegmentSize.
	SegmentSize int64

	// Sync is how long a change may wait for its sync in the background. 0: Flush
	// asks for a call of Sync. Negative: until an eighth of a segment waits.
	Sync time.Duration

	// Epoch is the moment, in nanoseconds since 1970, at which the engine's clock
	// is 0.
	Epoch int64

	// Member says that the journal is that of a member of a cluster: it gets what the
	// members have agreed on, by AppendCommitted, and nothing else. Then Sync should be
	// positive: nobody waits for a sync.
	Member bool

	// Logger is told of damage, full disks and failures. Nil: nothing is logged.
	Logger *slog.Logger

	// Progress, if not nil, is called now and then while Open reads.
	Progress func(done, total int64)
}

// A Journal is the log of one engine.
type Journal struct {
	// Static after Open.
	opt   Options
	log   *slog.Logger
	fs    vfs.FS
	dir   string
	eng   *engine.Engine
	files *wal.Log

	// Owned by the turn.
	buf       []byte   // scratch
	dirty     bool     // something was appended since the last Flush
	unflushed int64    // bytes appended since the last Flush
	bytes     int64    // size of the records in all segments, about
	index     index    // J1, J2, J5
	space     space    // J3
	standing  standing // J4
	lastID    uint64   // segment of the last record of the last id
	applied   applied  // of a member of a cluster
	appended  int      // so many facts of the entry that AppendCommitted is about were appended before
	now       int64    // of the last Housekeep on the engine's clock; of a member: of the last entry
	cleaner   cleaner
	rewriting *rewriting        // nil if the journal is not being rewritten
	tubes     map[string]string // scratch of cleaning: names
	health    health
	stats     Stats

	syncing   syncing
	preparing preparing

	// What Sync has to make durable. Written by the turn, read by the goroutine
	// that syncs.
	target struct {
		sync.Mutex
		wal.Target
	}
}

// Stats describe a journal.
type Stats struct {
	wal.Stats
	Written  uint64 // records, since Open, those migrated included
	Migrated uint64 // records that cleaning wrote again
	Live     int64  // bytes that all jobs would take if they were rewritten
	Err      error  // why changes are refused now; nil if they are not
	Refusal  error  // why changes, or new jobs, are refused; nil if they are not
	Health   error  // the worst of what is wrong, Err included; nil if all is well
}

// New returns a journal whose Admit can be given to an engine. Open must come
// before that engine's first change.
func New(opt Options) *Journal {
	j := &Journal{
		opt:      opt,
		log:      cmp.Or(opt.Logger, slog.New(slog.DiscardHandler)),
		standing: newStanding(make(map[string]fact)),
		index:    index{inFlight: inFlight{jobs: make(map[uint64]flight)}, jobsIn: make(map[uint32]int)},
		tubes:    make(map[string]string),
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
		j.health.has(broken, err)
		return false, fmt.Errorf("journal: %w", err)
	}
	j.syncing.unsynced += max(j.unflushed, 1) // records that remove segments are not counted
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
	next = j.syncing.step(now)
	if j.files.Err() != nil {
		return j.heal(now)
	}
	if !j.appendGone() {
		next = min(next, now+healPause)
	}
	next = min(next, j.cleaner.step(now))
	next = min(next, j.syncing.awaitRemovals(now, j.dirty), j.space.retryFill(now))
	if j.dirty {
		next = min(next, now+cleanPause) // for the Flush
	}
	return min(next, j.preparing.step(now))
}

// Stats describes the journal. It must be called within a turn.
func (j *Journal) Stats() Stats {
	st := j.stats
	st.Stats = j.files.Stats()
	st.Live = j.index.live
	st.Err = j.files.Err()
	st.Refusal = cmp.Or(j.health.err(broken), j.health.err(full), j.health.err(stuck), st.Err)
	st.Health = cmp.Or(j.health.worst(), st.Err)
	return st
}

// Close implements broker.Log. It also writes the counters of jobs that have changed
// without a record, unless the journal is a member's. What is in flight then is
// forgotten: Open reads what was agreed on into another engine.
func (j *Journal) Close() error {
	j.preparing.wait()
	j.syncing.wait()
	err := cmp.Or(j.files.Err(), j.finish())
	if err != nil {
		j.lostFile(err)
		if err = j.recover(); err == nil { // the last chance
			err = j.finish()
		}
	}
	if err == nil && j.rewriting != nil && j.rewriting.why != nil {
		err = j.rewriting.finish()
	}
	if e := j.files.Close(); err == nil {
		err = e
	}
	j.eng, j.index.eng = nil, nil // those who watch keep the journal
	return wrap(err)
}

// finish appends what is left and makes all durable.
func (j *Journal) finish() error {
	for len(j.standing.gone) > 0 && j.appendGone() {
	}
	if !j.opt.Member {
		if err := j.appendUnlogged(); err != nil {
			return err
		}
	}
	return j.files.Seal()
}

// appendUnlogged writes the state of each job that was reserved or timed out since its
// last record. If there is no room, only counters are lost.
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
