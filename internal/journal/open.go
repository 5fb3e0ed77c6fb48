package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/binlog"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// A Report is the result of Open.
type Report struct {
	wal.Report
	Jobs    int
	Adopted *binlog.Report // report of the import from beanstalkd, or nil
}

// Open reads the journal in a directory, which must exist, into an empty engine, and
// makes it ready for that engine's changes. It imports beanstalkd files; see adopt.go.
//
// The error is a *wal.CorruptError if durable records are damaged. It wraps ErrOfMember,
// and Open changes nothing, if the journal is a cluster member's and Options.Member is
// not set. It wraps vfs.ErrLocked if another server or beanstalkd uses the directory.
func (j *Journal) Open(fsys vfs.FS, dir string, eng *engine.Engine) (Report, error) {
	j.fs, j.dir, j.eng, j.index.eng = fsys, dir, eng, eng
	var report Report
	files, err := wal.Open(fsys, dir, wal.Options{
		SegmentSize: j.opt.SegmentSize,
		Progress:    j.opt.Progress,
		Created:     j.opt.Epoch,
	})
	if err != nil {
		return report, fmt.Errorf("journal: %w", err)
	}
	j.files = files
	j.space = newSpace(files, &j.health, j.opt.SegmentSize, func() (int64, error) { return fsys.Free(dir) })
	j.syncer = syncer{files: files, health: &j.health, every: j.opt.Sync, most: j.opt.SegmentSize / unsyncedShare}
	j.preparer = preparer{files: files, health: &j.health}
	if err := j.read(&report); err != nil {
		j.space.releaseAll() // so that no preallocated segment remains
		files.Close()
		return report, fmt.Errorf("journal: %w", err)
	}
	return report, nil
}

func (j *Journal) read(report *Report) error {
	interrupted, err := vfs.Exists(j.fs, filepath.Join(j.dir, adopting))
	if err != nil {
		return err
	}
	eng := j.eng
	if interrupted {
		eng = engine.New(engine.Options{}) // beanstalkd might have deleted these jobs since
	}
	var r replayer
	if report.Report, err = r.replay(j.files, eng, j.opt.Epoch); err != nil {
		return err
	}
	if !j.opt.Member && r.applied != (Applied{}) {
		return ErrOfMember
	}
	j.persistentState, j.lastID = r.persistentState, r.lastID
	j.applied = applied{last: r.applied, segment: r.appliedIn, durable: r.applied} // all records that were read are durable
	j.indexJobs()
	j.bytes = j.files.Stats().Bytes
	switch err := j.space.fill(); {
	case errors.Is(err, fs.ErrPermission): // an operator's mistake, not a failing disk
		return err
	case err != nil:
		j.health.noRoom(err, 0)
	}
	if report.Adopted, err = j.adopt(report.Records == 0, interrupted); err != nil {
		return err
	}
	st := j.eng.Stats()
	report.Jobs = int(st.Ready + st.Delayed + st.Buried)
	return nil
}

// indexJobs counts all jobs of the engine.
func (j *Journal) indexJobs() {
	j.index.live, j.space.deletions.want = 0, 0
	clear(j.index.jobsIn)
	for c := range j.eng.Snapshots {
		j.index.live += weight(&c)
		j.space.deletions.want++
		if c.Segment > 0 {
			j.index.jobsIn[c.Segment]++
		}
	}
}

// A replayer reads a log into an engine. It collects the segments of the last records of
// pauses, policies and the last id.
type replayer struct {
	eng   *engine.Engine
	epoch int64
	pool  sync.Pool // pool of *replayed

	persistentState persistentState
	lastID          uint64
	applied         Applied
	appliedIn       uint64
}

// replayed is a decoded block of records.
type replayed struct {
	changes []engine.Change
	tubes   map[string]string // each name is allocated once per block
}

func (r *replayer) replay(files *wal.Log, eng *engine.Engine, epoch int64) (wal.Report, error) {
	r.eng, r.epoch = eng, epoch
	r.persistentState = newPersistentState()
	r.pool.New = func() any { return &replayed{tubes: make(map[string]string)} }
	return wal.Replay(files, r.decode, r.restore)
}

// decode runs on all processors.
func (r *replayer) decode(records []wal.Record) (*replayed, error) {
	b := r.pool.Get().(*replayed)
	b.changes = b.changes[:0]
	for _, rec := range records {
		c, err := record.Decode(rec.Payload, r.epoch, b.tubes)
		if err != nil {
			return nil, fmt.Errorf("segment %d at %d: %w", rec.Segment, rec.Offset, err)
		}
		c.Segment = uint32(rec.Segment)
		b.changes = append(b.changes, c)
	}
	return b, nil
}

// restore runs in the order of the log.
func (r *replayer) restore(b *replayed) error {
	for i := range b.changes {
		c := &b.changes[i]
		switch c.Kind {
		case engine.TubePaused, engine.PolicySet, engine.ScheduleSet, engine.ScheduleMark:
			r.persistentState.record(c, uint64(c.Segment))
		case engine.JobPut:
			if mark, ok := c.MarkOf(); ok {
				r.persistentState.record(&mark, uint64(c.Segment))
			}
		case engine.LastID:
			r.lastID = uint64(c.Segment)
		case record.AppliedMark:
			r.applied, _ = record.DecodeApplied(c.Body)
			r.appliedIn = uint64(c.Segment)
			continue
		}
		r.eng.Restore(*c)
	}
	r.pool.Put(b)
	return nil
}

var errMissingJobs = errors.New("jobs are missing from their segment")
