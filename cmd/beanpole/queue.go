package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/internal/admin/api"
	"github.com/beanpole-mq/beanpole/internal/binlog"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/histogram"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A queue is an engine with its broker, and its journal if there is one.
type queue struct {
	broker  *broker.Broker
	journal *journal.Journal // nil: jobs are in memory only
	syncs   histogram.Shared // of the journal's files: how long they took, in ns
	where   string           // the jobs are kept, for the log
}

// openQueue makes the queue and reads the journal into it. The engine's clock
// starts with it.
func openQueue(opt journalOptions, limits engine.Limits, slow slowOptions, log *slog.Logger) (*queue, error) {
	start := time.Now()
	now := func() int64 { return int64(time.Since(start)) }
	turns := broker.Options{Now: now, SlowTurn: slow.turns(log), SlowAfter: slow.turn}
	q := &queue{where: "none, jobs are in memory only"}
	if opt.dir == "" {
		q.broker = broker.New(engine.New(engine.Options{Limits: limits}), turns)
		return q, nil
	}
	j := journal.New(journal.Options{
		SegmentSize: opt.segmentSize(),
		Sync:        opt.fsync,
		Epoch:       start.UnixNano(),
		Logger:      log,
		Progress:    reading(log),
	})
	eng := engine.New(engine.Options{Logged: true, Admit: j.Admit, Limits: limits})
	slowSync := slow.syncs(log)
	files := vfs.Timed(vfs.OS, now, func(took int64) {
		q.syncs.Record(took)
		slowSync(took)
	})
	report, err := j.Open(files, opt.dir, eng)
	if err != nil {
		return nil, &exitError{exitJournal, journalHint(opt.dir, err)}
	}
	logReport(log, opt.dir, report, time.Since(start))
	turns.Log = j
	q.broker, q.journal, q.where = broker.New(eng, turns), j, opt.dir
	return q, nil
}

// reading returns a function that says once a second how far the reading of a
// long journal has come.
func reading(log *slog.Logger) func(done, total int64) {
	last := time.Now()
	return func(done, total int64) {
		if now := time.Now(); now.Sub(last) >= time.Second {
			last = now
			log.Info("reading the journal", "done", fmt.Sprintf("%d%%", 100*done/max(total, 1)), "bytes", done, "of", total)
		}
	}
}

func logReport(log *slog.Logger, dir string, r journal.Report, took time.Duration) {
	for _, t := range r.Torn {
		if t.Closed {
			log.Warn("the journal's last file had bytes behind its end; they were removed, no server has written them there",
				"file", t.File, "offset", t.Offset, "bytes", t.Length)
			continue
		}
		log.Warn("the journal ended in a write that a crash had cut short; it was removed: it was not durable, so without -f and -F nobody had been told that it was done",
			"file", t.File, "offset", t.Offset, "bytes", t.Length)
	}
	if r.Adopted != nil {
		logAdoption(log, r.Adopted)
	}
	log.Info("the journal is read", "directory", dir, "jobs", r.Jobs, "records", r.Records, "bytes", r.Bytes,
		"segments", r.Segments, "took", took.Round(time.Millisecond))
}

// logAdoption tells what was taken over from beanstalkd, and what was not.
func logAdoption(log *slog.Logger, r *binlog.Report) {
	for _, line := range r.Damage() {
		log.Warn("a file of beanstalkd could not be read whole; what was read is taken over, and the file is kept", "damage", line)
	}
	records := 0
	for _, f := range r.Files {
		records += f.Records
	}
	log.Info("took over the files of beanstalkd, which are called beanstalkd-binlog.* now", "files", len(r.Files), "records", records)
}

// journalHint says what to do about an error of using a journal's directory.
func journalHint(dir string, err error) error {
	if damage, ok := errors.AsType[*wal.CorruptError](err); ok {
		return fmt.Errorf("the journal is damaged: %s at offset %d: %s (nothing was changed; 'beanpole journal check %s' shows all damage, "+
			"'beanpole journal repair %s' keeps what is whole)", damage.File, damage.Offset, damage.Reason, dir, dir)
	}
	hint := ""
	_, mixed := errors.AsType[*journal.MixedError](err)
	switch {
	case mixed:
		hint = fmt.Sprintf(" (nothing was changed; to have the jobs of both, move those files to a directory of their own, THERE, and run "+
			"'beanpole journal import %s THERE')", dir)
	case errors.Is(err, journal.ErrUnfinished):
		hint = " (put them back; or move beanpole.*.wal away, if their jobs are not wanted)"
	case errors.Is(err, vfs.ErrLocked):
		hint = " (another beanpole or beanstalkd uses this directory; stop it, or choose another)"
	case errors.Is(err, fs.ErrNotExist) && checkDirectory(dir) == nil:
		hint = " (a link to nothing? nothing was changed; move it away)"
	case errors.Is(err, fs.ErrNotExist):
		hint = " (the directory must exist and belong to the user that the server runs as)"
	case errors.Is(err, fs.ErrPermission):
		hint = " (the directory and its files must belong to the user that the server runs as)"
	case errors.Is(err, syscall.ENOTDIR):
		hint = " (it must be a directory)"
	case errors.Is(err, syscall.ENOSPC):
		hint = " (make room on the disk)"
	case errors.Is(err, vfs.ErrNotRegular):
		hint = " (nothing was changed; move it away)"
	}
	return fmt.Errorf("directory %s: %s%s", dir, plain(err), hint)
}

// plain returns the text of an error without the names of the packages that it
// came through, which are for developers.
func plain(err error) string {
	text := ": " + err.Error()
	for _, name := range []string{"journal", "wal", "binlog"} {
		text = strings.ReplaceAll(text, ": "+name+": ", ": ")
	}
	return strings.TrimPrefix(text, ": ")
}

// journalHealth returns what the API shows of the journal, or nil.
func (q *queue) journalHealth() func() api.Journal {
	if q.journal == nil {
		return nil
	}
	return func() api.Journal {
		st := q.journal.Stats()
		return api.Journal{Health: health(st), Segments: st.Segments, Bytes: st.Bytes, LiveBytes: st.Live}
	}
}

// health says what is the matter with the journal, or ok.
func health(st journal.Stats) string {
	if st.Trouble != nil {
		return plain(st.Trouble)
	}
	return "ok"
}

// logStats returns what stats shows of the journal, or nil.
func (q *queue) logStats() func() server.LogStats {
	if q.journal == nil {
		return nil
	}
	return func() server.LogStats {
		st := q.journal.Stats()
		return server.LogStats{
			OldestSegment:   st.Oldest,
			CurrentSegment:  st.Current,
			RecordsMigrated: st.Migrated,
			RecordsWritten:  st.Written,
			Extra: []wire.Stat{
				{Key: "journal-health", Value: health(st), Quoted: true},
				{Key: "journal-bytes", Value: strconv.FormatInt(st.Bytes, 10)},
				{Key: "journal-live-bytes", Value: strconv.FormatInt(st.Live, 10)},
				{Key: "journal-segments", Value: strconv.Itoa(st.Segments)},
			},
		}
	}
}
