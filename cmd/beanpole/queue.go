package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
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
	where   string           // the jobs are kept, for the log
}

// openQueue makes the queue and reads the journal into it. The engine's clock
// starts with it.
func openQueue(opt journalOptions, log *slog.Logger) (*queue, error) {
	start := time.Now()
	now := func() int64 { return int64(time.Since(start)) }
	if opt.dir == "" {
		return &queue{
			broker: broker.New(engine.New(engine.Options{}), broker.Options{Now: now}),
			where:  "none, jobs are in memory only",
		}, nil
	}
	j := journal.New(journal.Options{
		SegmentSize: int64(opt.segmentSize),
		Sync:        opt.fsync,
		Epoch:       start.UnixNano(),
		Logger:      log,
		Progress:    reading(log),
	})
	eng := engine.New(engine.Options{Logged: true, Admit: j.Admit})
	report, err := j.Open(vfs.OS, opt.dir, eng)
	if err != nil {
		return nil, &exitError{exitJournal, journalHint(opt.dir, err)}
	}
	logReport(log, opt.dir, report, time.Since(start))
	return &queue{
		broker:  broker.New(eng, broker.Options{Log: j, Now: now}),
		journal: j,
		where:   opt.dir,
	}, nil
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
		log.Warn("the journal ended in a write that a crash had cut short; it was removed, nobody had been told that it was done",
			"file", t.File, "offset", t.Offset, "bytes", t.Dropped)
	}
	log.Info("the journal is read", "directory", dir, "jobs", r.Jobs, "records", r.Records, "bytes", r.Bytes,
		"segments", r.Segments, "took", took.Round(time.Millisecond))
}

// journalHint says what to do about an error of opening a journal.
func journalHint(dir string, err error) error {
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return fmt.Errorf("-b %s: %w (another beanpole or beanstalkd uses this directory; stop it, or choose another)", dir, err)
	case errors.Is(err, wal.ErrCorrupt):
		return fmt.Errorf("-b %s: %w (nothing was changed; 'beanpole journal check %s' shows all damage, "+
			"'beanpole journal repair %s' keeps what is whole)", dir, err, dir, dir)
	}
	return fmt.Errorf("-b %s: %w", dir, err)
}

// logStats returns what stats shows of the journal, or nil.
func (q *queue) logStats() func() server.LogStats {
	if q.journal == nil {
		return nil
	}
	return func() server.LogStats {
		st := q.journal.Stats()
		health := "ok"
		if st.Err != nil {
			health = st.Err.Error()
		}
		return server.LogStats{
			OldestSegment:   st.Oldest,
			CurrentSegment:  st.Current,
			RecordsMigrated: st.Migrated,
			RecordsWritten:  st.Written,
			Extra: []wire.Stat{
				{Key: "journal-health", Value: health, Quoted: true},
				{Key: "journal-bytes", Value: strconv.FormatInt(st.Bytes, 10)},
				{Key: "journal-live-bytes", Value: strconv.FormatInt(st.Live, 10)},
				{Key: "journal-segments", Value: strconv.Itoa(st.Segments)},
			},
		}
	}
}
