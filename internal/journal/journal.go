package journal

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// Options of a Journal. The zero value syncs at each commit.
type Options struct {
	// SegmentSize is the size of a segment in bytes; 0: wal.DefaultSegmentSize.
	SegmentSize int64

	// Sync is how long a change may wait for its sync. 0: Commit syncs. Negative:
	// for ever.
	Sync time.Duration

	// Epoch is the moment, in nanoseconds since 1970, at which the engine's clock
	// is 0.
	Epoch int64

	// Logger hears of damage, full disks and failures. Nil: nobody does.
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
	buf        []byte            // scratch
	dirty      bool              // something was appended since the last Commit
	unsynced   bool              // something was flushed since the last background sync began
	bytes      int64             // about what the records in all segments take
	live       int64             // J1; bytes
	marks      map[uint32]int    // J2
	unreserved int               // jobs for whose deletion there was no room at Open
	pauses     map[string]uint64 // tube -> segment of its last pause record
	lastID     uint64            // segment of the last record of the last id
	recent     []placed          // whole records that were not yet durable
	cleaner    cleaner
	tubes      map[string]string // scratch of cleaning: names
	trouble    trouble
	syncedAt   int64 // when the last background sync was started, on the engine's clock
	stats      Stats

	syncing   background // with Options.Sync > 0
	preparing background
}

// placed is where the whole record of a job was written.
type placed struct {
	at wal.Pos
	id uint64
}

// Stats tell how the journal is.
type Stats struct {
	wal.Stats
	Written  uint64 // records, since Open, those migrated included
	Migrated uint64 // records that cleaning wrote again
	Live     int64  // bytes that all jobs would take if they were written anew
	Err      error  // why changes are refused now; nil if they are not
}

// New returns a journal whose Admit can be given to an engine. Open must come
// before that engine's first change.
func New(opt Options) *Journal {
	j := &Journal{
		opt:    opt,
		log:    opt.Logger,
		marks:  make(map[uint32]int),
		pauses: make(map[string]uint64),
		tubes:  make(map[string]string),
	}
	if j.opt.SegmentSize == 0 {
		j.opt.SegmentSize = wal.DefaultSegmentSize
	}
	if j.log == nil {
		j.log = slog.New(slog.DiscardHandler)
	}
	return j
}

// deletion is the room that is reserved for the deletion of each job.
var deletion = wal.Cost(maxDeleted)

// cost returns the most that the record of a change takes, bytes in the log.
func cost(kind engine.ChangeKind, tube, body int) int64 {
	switch kind {
	case engine.JobPut:
		return wal.Cost(maxJob + 1 + tube + body)
	case engine.JobState:
		return wal.Cost(maxJob)
	case engine.JobDeleted:
		return deletion
	}
	return wal.Cost(maxPaused + tube)
}

// weight is what a job counts for in live: about the size of its whole record,
// and the same all its life.
func weight(c *engine.Change) int64 {
	return wal.Cost(32 + len(c.Tube) + c.BodyLen)
}

// Admit is for engine.Options.Admit: it reserves the room that Append will need,
// and for a put that of the later delete.
func (j *Journal) Admit(kind engine.ChangeKind, tube string, body int) engine.Outcome {
	if j.files.Err() != nil {
		return engine.Failed
	}
	if kind == engine.JobDeleted && j.unreserved == 0 {
		return engine.OK
	}
	n := cost(kind, len(tube), body)
	err := j.files.Reserve(n)
	if err == nil && kind == engine.JobPut {
		if err = j.files.Reserve(deletion); err != nil {
			j.files.Unreserve(n)
		}
	}
	if err != nil {
		j.trouble.noRoom(j.log, err)
		return engine.OutOfMemory
	}
	if kind == engine.JobDeleted {
		j.unreserved-- // from here on it is as if it had been reserved at the put
	}
	j.trouble.room(j.log)
	return engine.OK
}

// Append implements broker.Log.
func (j *Journal) Append(changes []engine.Change) error {
	for i := range changes {
		c := &changes[i]
		if c.Kind != engine.TubeGone {
			j.files.Unreserve(cost(c.Kind, len(c.Tube), len(c.Body)))
		}
		at, err := j.append(c)
		if err != nil {
			if c.Kind == engine.TubeGone && j.files.Err() == nil {
				continue // the disk is full: a pause too many after a restart is all
			}
			return err
		}
		switch c.Kind {
		case engine.JobPut:
			j.placed(c.ID, at)
			j.live += weight(c)
		case engine.JobDeleted:
			j.unmark(c.Mark)
			j.live -= weight(c)
		}
	}
	return nil
}

// append appends the record of a change.
func (j *Journal) append(c *engine.Change) (wal.Pos, error) {
	j.buf = appendRecord(j.buf[:0], c, j.opt.Epoch)
	at, err := j.files.Append(j.buf, c.Body)
	if err != nil {
		return at, fmt.Errorf("journal: %w", err)
	}
	j.dirty = true
	j.stats.Written++
	n := wal.Cost(len(j.buf) + len(c.Body))
	j.bytes += n
	j.cleaner.appended += n
	j.noteOthers(c, at.Segment)
	return at, nil
}

// noteOthers notes where the last records are that speak of no job.
func (j *Journal) noteOthers(c *engine.Change, segment uint64) {
	switch {
	case c.Kind == engine.LastID:
		j.lastID = segment
	case c.Kind == engine.TubeGone, c.Kind == engine.TubePaused && c.Delay == 0:
		delete(j.pauses, c.Tube)
	case c.Kind == engine.TubePaused:
		j.pauses[c.Tube] = segment
	}
}

// placed notes that the whole record of a job is at a place now. The job may
// be gone again: then its deletion follows in the same turn.
func (j *Journal) placed(id uint64, at wal.Pos) {
	if j.eng.SetMark(id, uint32(at.Segment)) {
		j.marks[uint32(at.Segment)]++
		j.recent = append(j.recent, placed{at, id})
	}
}

// unmark notes that a job does not have a mark any more. It had none, which is
// 0, if it was put and deleted in the same turn.
func (j *Journal) unmark(mark uint32) {
	if mark == 0 {
		return
	}
	if j.marks[mark]--; j.marks[mark] == 0 {
		delete(j.marks, mark)
	}
}

// Commit implements broker.Log.
func (j *Journal) Commit() error {
	if !j.dirty {
		return nil
	}
	j.dirty = false
	err := j.files.Flush()
	if err == nil && j.opt.Sync == 0 {
		err = j.files.Sync()
	}
	if err != nil {
		j.trouble.failed(j.log, err)
		return fmt.Errorf("journal: %w", err)
	}
	j.unsynced = true
	j.forget()
	return nil
}

// forget drops the notes about records that are durable.
func (j *Journal) forget() {
	durable, n := j.files.Durable(), 0
	for n < len(j.recent) && j.recent[n].at.Compare(durable) < 0 {
		n++
	}
	j.recent = append(j.recent[:0], j.recent[n:]...)
}

// Housekeep implements broker.Log.
func (j *Journal) Housekeep(now int64) (next int64) {
	if j.files.Err() != nil {
		return j.heal(now)
	}
	if j.files.NeedsPrepare() {
		j.preparing.start(func() { _ = j.files.Prepare() }) // its errors come back when the room is needed
	}
	next = j.clean(now)
	if j.opt.Sync > 0 && j.unsynced {
		next = min(next, j.syncLater(now))
	}
	return next
}

// syncLater starts a sync in the background when it is time for one.
func (j *Journal) syncLater(now int64) (next int64) {
	due := j.syncedAt + int64(j.opt.Sync)
	if now < due {
		return due
	}
	target := j.files.Target()
	if !j.syncing.start(func() { _ = target.Sync() }) { // the next Flush tells of a failure
		return now + int64(j.opt.Sync)
	}
	j.syncedAt, j.unsynced = now, false
	return engine.Never
}

// healPause is how long Housekeep waits between two attempts to heal.
const healPause = int64(time.Second)

// heal tries to get the log out of its failed state.
func (j *Journal) heal(now int64) (next int64) {
	if now < j.trouble.retry {
		return j.trouble.retry
	}
	moved := make(map[wal.Pos]wal.Pos)
	if err := j.files.Recover(func(from, to wal.Pos) { moved[from] = to }); err != nil {
		j.trouble.retry = now + healPause
		return j.trouble.retry
	}
	for _, p := range j.recent {
		if to, ok := moved[p.at]; ok {
			if mark, ok := j.eng.Mark(p.id); ok && uint64(mark) == p.at.Segment {
				j.unmark(mark)
				j.eng.SetMark(p.id, uint32(to.Segment))
				j.marks[uint32(to.Segment)]++
			}
		}
	}
	j.recent = j.recent[:0]
	// Where the records of pauses and of the last id are now was not noted:
	// cleaning will write them again.
	j.lastID = 0
	for tube := range j.pauses {
		j.pauses[tube] = 0
	}
	j.bytes = j.files.Stats().Bytes
	j.trouble.healed(j.log)
	return now
}

// Stats returns how the journal is. It is for the goroutine of the turn.
func (j *Journal) Stats() Stats {
	st := j.stats
	st.Stats = j.files.Stats()
	st.Live = j.live
	st.Err = j.files.Err()
	return st
}

// Close implements broker.Log. What stats-job tells of a job and was not worth
// a record by itself is written now.
func (j *Journal) Close() error {
	j.preparing.wait()
	j.syncing.wait()
	var err error
	if j.files.Err() == nil {
		err = j.appendUnlogged()
	}
	if e := j.files.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// appendUnlogged writes the state of each job that has been reserved or timed out
// since its last record. Only counters are lost if there is no room.
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

// background runs one function at a time in a goroutine.
type background struct {
	mu   sync.Mutex
	busy bool
	wg   sync.WaitGroup
}

// start runs f unless one is running.
func (b *background) start(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy {
		return false
	}
	b.busy = true
	b.wg.Go(func() {
		f()
		b.mu.Lock()
		b.busy = false
		b.mu.Unlock()
	})
	return true
}

func (b *background) wait() { b.wg.Wait() }

// trouble says each kind of trouble once when it begins and once when it ends.
type trouble struct {
	full   bool
	broken bool
	retry  int64 // when to try to heal, on the engine's clock
}

func (t *trouble) noRoom(log *slog.Logger, err error) {
	if !t.full {
		t.full = true
		log.Error("the journal has no room: new jobs are refused until there is", "err", err)
	}
}

func (t *trouble) room(log *slog.Logger) {
	if t.full {
		t.full = false
		log.Info("the journal has room again")
	}
}

func (t *trouble) failed(log *slog.Logger, err error) {
	if !t.broken {
		t.broken = true
		log.Error("the journal cannot be written: changes are refused until it can", "err", err)
	}
}

func (t *trouble) healed(log *slog.Logger) {
	if t.broken {
		t.broken = false
		log.Info("the journal is written again, and complete")
	}
}
