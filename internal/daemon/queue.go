package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/beanpole-mq/beanpole/internal/advice"
	"github.com/beanpole-mq/beanpole/internal/api"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
	"github.com/beanpole-mq/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A queue is an engine with its broker, and its journal if there is one.
type queue struct {
	broker  *broker.Broker
	journal func() *journal.Journal // nil if jobs are in memory only
	member  *member                 // nil if there is no cluster
	syncs   *syncs                  // syncs of the journal's files
	where   string                  // storage of the jobs, for the log
}

// openQueue creates the queue and loads the journal. The engine's clock starts in this
// call.
func openQueue(p *plan) (*queue, error) {
	opt, slow, eopt, log := p.opt.Journal, p.opt.Slow, p.engine(), p.log
	start := time.Now()
	eopt.Epoch = start.UnixNano()
	now := func() int64 { return int64(time.Since(start)) }
	turns := broker.Options{Now: now, SlowTurn: logSlowTurns(slow.Turn, log), SlowAfter: slow.Turn}
	q := &queue{where: "none, jobs are in memory only"}
	isMember, err := belongsToMember(&opt)
	if err != nil {
		return nil, err
	}
	if opt.Dir == "" {
		q.broker = broker.New(engine.New(eopt), turns)
		return q, nil
	}
	jopt := journal.Options{SegmentSize: opt.SegmentSize(), Sync: opt.Fsync, Epoch: eopt.Epoch, Logger: log, Progress: reading(log)}
	q.syncs = newSyncs(now, slow.Sync, log)
	if isMember {
		return q, q.openMember(p, jopt, eopt, turns)
	}
	j := journal.New(jopt)
	eopt.Logged, eopt.Admit = true, j.Admit
	eng := engine.New(eopt)
	report, err := j.Open(vfs.Observed(vfs.OS, q.syncs), opt.Dir, eng)
	if err != nil {
		return nil, exit.WithCode(exit.Journal, advice.Explain(opt.Dir, err))
	}
	logReport(log, opt.Dir, report, time.Since(start))
	turns.Log = j
	q.broker, q.journal, q.where = broker.New(eng, turns), func() *journal.Journal { return j }, opt.Dir
	return q, nil
}

// belongsToMember reports whether the journal's directory belongs to a member of a
// cluster. It returns an error if a server cannot use the directory.
func belongsToMember(opt *config.Journal) (bool, error) {
	if opt.Dir == "" {
		if opt.Member {
			return false, exit.UsageError("--cluster wants the directory of a member: -b DIR")
		}
		return false, nil
	}
	isMember, err := directory.Exists(vfs.OS, opt.Dir)
	if _, other := vfs.OS.List(opt.Dir); other != nil { // in this case, the hint about a member is irrelevant
		err = other
	}
	if err != nil {
		return false, exit.WithCode(exit.Journal, advice.Explain(opt.Dir, err))
	}
	if opt.Member && !isMember {
		return false, exit.WithCode(exit.Journal, fmt.Errorf("directory %[1]s does not belong to a cluster member, but --cluster (cluster = true, BEANPOLE_CLUSTER) is set; is its disk mounted? "+
			"(if it is lost: 'beanpole cluster remove' the old member on another member, and 'beanpole cluster join %[1]s'; 'beanpole cluster init %[1]s' creates the first member)", opt.Dir))
	}
	return isMember, nil
}

// close stops the queue and closes its journal.
func (q *queue) close() error {
	if q.member != nil {
		return q.member.close()
	}
	return q.broker.Close()
}

// reading returns a function that logs the progress of loading a long journal, once a
// second.
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
			log.Warn("removed bytes after the journal's end: no server wrote them, and no job is lost",
				"file", t.File, "offset", t.Offset, "bytes", t.Length)
			continue
		}
		log.Warn("removed an incomplete write at the journal's end: it was not synced, so unless -f or -F is set, no reply depended on it",
			"file", t.File, "offset", t.Offset, "bytes", t.Length, "records", t.Records)
	}
	if a := r.Adopted; a != nil {
		for _, line := range a.Damage {
			log.Warn("a beanstalkd file is damaged: its intact records are imported, and the file is kept", "damage", line)
		}
		log.Info("imported beanstalkd's files, renamed to beanstalkd-binlog.*", "files", a.Files, "records", a.Records)
	}
	log.Info("journal loaded", "directory", dir, "jobs", r.Jobs, "records", r.Records, "bytes", r.Bytes,
		"segments", r.Segments, "took", took.Round(time.Millisecond))
}

// journalStats returns a function that reports the journal's statistics, or nil if there
// is no journal.
func (q *queue) journalStats() func() server.JournalStats {
	if q.journal == nil {
		return nil
	}
	return func() server.JournalStats {
		st := q.journal().Stats()
		return server.JournalStats{
			Health: plain(st.Health), Refusal: plain(st.Refusal), OldestSegment: st.Oldest, CurrentSegment: st.Current, Segments: st.Segments,
			Bytes: st.Bytes, LiveBytes: st.Live, RecordsWritten: st.Written, RecordsMigrated: st.Migrated, Syncs: q.syncs.durations(),
		}
	}
}

// openBackup opens a backup of the journal, or returns nil if the journal is empty.
func (q *queue) openBackup() (api.Backup, error) {
	b, err := q.journal().Backup()
	switch {
	case errors.Is(err, journal.ErrNothing):
		return nil, nil
	case err != nil:
		return nil, err // not b, which would become a non-nil interface
	}
	return b, nil
}

// plain returns the text of err, or "" if err is nil.
func plain(err error) string {
	if err == nil {
		return ""
	}
	return advice.Plain(err)
}
