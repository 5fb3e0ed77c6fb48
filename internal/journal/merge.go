package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/binlog"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// Taking the jobs of another directory into a journal:
//
//  1. a table of old and new ids is written beside the journal;
//  2. a record says that the merge has begun, and the highest id before;
//  3. every job is written whole;
//  4. a record says that the merge is done, and of which files; all is made
//     durable.
//
// A job keeps its id if the journal has never given out that id or a higher one, and it
// is a safe one (engine.MaxSafeID); otherwise it gets one that is higher than all. So all
// jobs of a merge have ids above the one of 2, and to undo it means to delete those. If
// it was interrupted before 4, the next process that opens the journal undoes it, a
// server or another merge: no client was served yet.

// Errors of Merge.
var (
	ErrNoJobs = errors.New("there are neither files of beanstalkd (binlog.*) nor a journal")
	ErrMerged = errors.New("it was merged or taken over before: its jobs would be there twice")
	ErrBoth   = errors.New("there are files of beanstalkd (binlog.*) beside a journal: move those to merge to a directory of their own")
)

// A MergeReport says what Merge has done.
type MergeReport struct {
	Jobs    int
	NewIDs  int             // so many of them have another id than before
	Table   string          // path of the table of old and new ids; empty if there was no job
	Binlog  *binlog.Report  // what was read of beanstalkd's files; nil if it was a journal
	LeftOut []engine.Change // pauses, whose moments count from 1970, and policies
	Adopted *binlog.Report  // beanstalkd's files that were in dir itself; nil if there were none
	Begun   bool            // something of it was written
}

// Merge takes the jobs of the files of beanstalkd, or of the journal, in the
// directory from into the journal in dir, which may be new. It holds the locks of
// both: the error wraps vfs.ErrLocked if a server uses one of them. It changes nothing
// in from. After an error nothing is merged, or the next process that opens the
// journal undoes it; only if the very last sync has failed, all may be merged. Merge
// can always be repeated; if all was merged the error is ErrMerged.
//
// Jobs keep everything except, perhaps, their ids. Buried jobs come after those that
// were buried in the journal. Both queues are in memory at the same time. Options.Sync
// is ignored, and Options.Epoch is the present.
func Merge(fsys vfs.FS, dir, from string, opt Options) (report MergeReport, err error) {
	lock, err := fsys.Lock(filepath.Join(from, "lock"))
	if err != nil {
		return report, fmt.Errorf("journal: %s: %w", from, err)
	}
	defer lock.Close()
	src := source{eng: engine.New(engine.Options{})}
	if err := src.read(fsys, from, opt.Epoch); err != nil {
		return report, fmt.Errorf("journal: merge %s: %w", from, err)
	}

	j := New(opt)
	eng := engine.New(engine.Options{Logged: true, Admit: j.Admit})
	opened, err := j.Open(fsys, dir, eng)
	if err != nil {
		return report, err
	}
	report.Adopted, report.Binlog = opened.Adopted, src.binlog
	for c := range src.eng.Pauses {
		c.Due += opt.Epoch
		report.LeftOut = append(report.LeftOut, c)
	}
	report.LeftOut = slices.AppendSeq(report.LeftOut, src.eng.PoliciesSet())
	taken := len(j.transfers)
	err = j.mergeAll(&src, &report)
	closeErr := j.Close()
	if err == nil || len(j.transfers) > taken { // all is written; if a sync has failed, Close has tried again
		err = closeErr
	}
	if err != nil {
		return report, fmt.Errorf("journal: merge %s: %w", from, err)
	}
	return report, nil
}

// A source is a directory whose jobs are merged.
type source struct {
	eng    *engine.Engine
	files  []record.File  // with all the jobs
	binlog *binlog.Report // nil if it is a journal
}

func (s *source) read(fsys vfs.FS, dir string, epoch int64) error {
	theirs, err := binlog.Files(fsys, dir)
	if err != nil {
		return err
	}
	report, err := Load(fsys, dir, s.eng, epoch)
	switch {
	case err != nil:
		return err
	case report.Segments == 0 && len(theirs) == 0:
		return ErrNoJobs
	case report.Segments > 0 && len(theirs) > 0:
		return ErrBoth
	case report.Segments > 0:
		return s.identifySegments(fsys, dir)
	}
	return s.readBinlog(fsys, dir, epoch)
}

func (s *source) readBinlog(fsys vfs.FS, dir string, epoch int64) error {
	report, err := binlog.Read(fsys, dir, binlog.Options{Epoch: epoch}, func(c engine.Change) error {
		s.eng.Restore(c)
		return nil
	})
	if err != nil {
		return err
	}
	s.binlog = &report
	var names []string
	for _, f := range report.Files {
		if f.Records > 0 { // files without records are all equal
			names = append(names, f.Name)
		}
	}
	s.files, err = identifyAll(fsys, dir, names)
	return err
}

// identifySegments notes all segments, also preallocated ones: two logs have none in
// common.
func (s *source) identifySegments(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !wal.IsFileName(name) })
	s.files, err = identifyAll(fsys, dir, names)
	return err
}

// A move is a job with its old id and its new one.
type move struct{ from, to uint64 }

func (j *Journal) mergeAll(src *source, report *MergeReport) error {
	if err := j.checkNew(src.files); err != nil {
		return err
	}
	last := j.eng.LastID()
	if j.undone != nil {
		last = *j.undone
	}
	moves, err := newIDs(src.eng, last)
	if err != nil || len(moves) == 0 {
		return err
	}
	report.Jobs = len(moves)
	for _, m := range moves {
		if m.from != m.to {
			report.NewIDs++
		}
	}
	if report.Table, err = j.writeTable(moves); err != nil {
		return err
	}
	taken := len(j.transfers)
	report.Begun = true
	err = j.mergeJobs(src, moves, last)
	if err != nil && len(j.transfers) == taken {
		_ = j.fs.Remove(report.Table) // the merge will be undone
	}
	return err
}

// checkNew returns an error if one of the files was merged or taken over before.
func (j *Journal) checkNew(files []record.File) error {
	for _, t := range j.transfers {
		for _, f := range files {
			if slices.ContainsFunc(t.files, func(g record.File) bool { return f.Size == g.Size && f.SHA256 == g.SHA256 }) {
				return fmt.Errorf("%s: %w (%s)", f.Name, ErrMerged, time.Unix(0, t.at).UTC().Format(time.RFC3339))
			}
		}
	}
	return nil
}

// newIDs returns the moves of all jobs, by their old ids. All new ids are above last. Ids
// that only a fault can have set are not kept.
func newIDs(eng *engine.Engine, last uint64) ([]move, error) {
	var moves []move
	for c := range eng.Snapshots {
		moves = append(moves, move{c.ID, c.ID})
	}
	slices.SortFunc(moves, func(a, b move) int {
		if a.from < b.from {
			return -1
		}
		return 1
	})
	next := max(last, lastSafe(eng))
	for _, m := range moves {
		if m.from <= engine.MaxSafeID {
			next = max(next, m.from)
		}
	}
	for i := range moves {
		m := &moves[i]
		if m.from > last && m.from <= engine.MaxSafeID {
			continue
		}
		if next >= engine.MaxID {
			return nil, errors.New("there are no ids left")
		}
		next++
		m.to = next
	}
	return moves, nil
}

// lastSafe returns the highest id that was given out, or 0 if a fault has set it.
func lastSafe(eng *engine.Engine) uint64 {
	if id := eng.LastID(); id <= engine.MaxSafeID {
		return id
	}
	return 0
}

// writeTable writes the table of old and new ids. doc/journal.md describes it.
func (j *Journal) writeTable(moves []move) (path string, err error) {
	there, err := j.fs.List(j.dir)
	if err != nil {
		return "", err
	}
	name := "merge-" + time.Unix(0, j.opt.Epoch).UTC().Format("20060102T150405Z") + ".ids"
	path = filepath.Join(j.dir, freeName(name, there))
	f, err := j.fs.Create(path)
	if err != nil {
		return "", err
	}
	w := bufio.NewWriterSize(io.NewOffsetWriter(f, 0), 1<<16)
	fmt.Fprint(w, "# old id\tnew id\n")
	for _, m := range moves {
		fmt.Fprintf(w, "%d\t%d\n", m.from, m.to)
	}
	if err = w.Flush(); err == nil {
		err = f.Sync()
	}
	f.Close()
	if err == nil {
		err = j.fs.SyncDir(j.dir)
	}
	return path, err
}

// mergeJobs writes the jobs. If it fails, the next start undoes it.
func (j *Journal) mergeJobs(src *source, moves []move, last uint64) error {
	if _, err := j.append(&engine.Change{Kind: record.MergeBegun, ID: last}); err != nil {
		return err
	}
	ranks := lastRank(j.eng)
	for _, m := range moves {
		c, _ := src.eng.Snapshot(m.from)
		c.ID, c.Segment = m.to, 0
		if c.State == engine.Buried {
			c.Due += ranks
		}
		j.eng.Restore(c)
		c, _ = j.eng.Snapshot(c.ID)
		if err := j.appendJob(c); err != nil {
			return err
		}
	}
	j.eng.Restore(engine.Change{Kind: engine.LastID, ID: lastSafe(src.eng)})
	return j.endTransfer(record.MergeDone, src.files)
}

// lastRank returns the highest rank of a buried job.
func lastRank(eng *engine.Engine) (rank int64) {
	for c := range eng.Snapshots {
		if c.State == engine.Buried {
			rank = max(rank, c.Due)
		}
	}
	return rank
}

// undoMerge deletes the jobs of a merge that was interrupted. last is the
// highest id before it.
func (j *Journal) undoMerge(last uint64) error {
	err := j.undo(last)
	if err == nil {
		_, err = j.append(&engine.Change{Kind: record.MergeDone, Body: record.AppendTransfer(nil, j.opt.Epoch, nil)})
	}
	if err == nil {
		err = j.makeDurable()
	}
	if err != nil {
		return fmt.Errorf("undo a merge that was interrupted: %w", err)
	}
	j.undone = &last
	j.log.Warn("a merge was interrupted; what it had written is removed, and it can be repeated")
	return nil
}
