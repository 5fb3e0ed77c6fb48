package journal

import (
	"fmt"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// These functions are for tools. They neither lock the directory nor change it. If a
// server uses the directory, they can miss its newest records.

// Load reads the journal in a directory into an empty engine. The error wraps ErrAdopting
// if the journal is incomplete.
func Load(fsys vfs.FS, dir string, eng *engine.Engine, epoch int64) (Report, error) {
	var report Report
	files, err := openForReading(fsys, dir)
	if err != nil {
		return report, err
	}
	defer files.Close()
	var r replayer
	if report.Report, err = r.replay(files, eng, epoch); err != nil {
		return report, fmt.Errorf("journal: %w", err)
	}
	st := eng.Stats()
	report.Jobs = int(st.Ready + st.Delayed + st.Buried)
	return report, nil
}

// An Entry is a record in readable form. JSON contains only the fields of its kind.
type Entry struct {
	Segment uint64 `json:"segment"`
	Offset  int64  `json:"offset"` // bytes
	Kind    string `json:"kind"`   // put, state, deleted, paused, last-id, applied, policy

	ID       uint64     `json:"id,omitempty"`
	Tube     string     `json:"tube,omitempty"`
	State    string     `json:"state,omitempty"` // ready, delayed, buried
	Pri      *uint32    `json:"priority,omitempty"`
	Delay    *uint32    `json:"delay,omitempty"` // seconds
	TTR      uint32     `json:"ttr,omitempty"`   // seconds
	Created  *time.Time `json:"created,omitempty"`
	Due      *time.Time `json:"due,omitempty"`  // time at which a delayed job becomes ready, or a pause ends
	Rank     int64      `json:"rank,omitempty"` // rank of a buried job
	Reserves uint32     `json:"reserves,omitempty"`
	Timeouts uint32     `json:"timeouts,omitempty"`
	Releases uint32     `json:"releases,omitempty"`
	Buries   uint32     `json:"buries,omitempty"`
	Kicks    uint32     `json:"kicks,omitempty"`
	Body     []byte     `json:"body,omitempty"`     // base64 in JSON
	Origin   string     `json:"origin,omitempty"`   // tube from which a policy moved the job
	Schedule string     `json:"schedule,omitempty"` // schedule that put the job
	Settings []string   `json:"settings,omitempty"` // settings of the pattern Tube; empty if they were removed

	// End of the last attempt of a job; see engine.Failure.
	Attempt  uint32     `json:"attempt,omitempty"`
	End      string     `json:"end,omitempty"`    // timeout, closed, released, buried, taken
	Policy   string     `json:"policy,omitempty"` // setting that exhausted or expired the job
	Ended    *time.Time `json:"ended,omitempty"`
	Took     float64    `json:"took,omitempty"`   // seconds
	Buried   *time.Time `json:"buried,omitempty"` // last burial
	Identity string     `json:"identity,omitempty"`
	Address  string     `json:"address,omitempty"`
	Reason   string     `json:"reason,omitempty"`

	At    *time.Time `json:"at,omitempty"`    // creation time of an applied entry of a cluster's log
	Index uint64     `json:"index,omitempty"` // index of that entry
	Term  uint64     `json:"term,omitempty"`  // term of that entry
}

// Dump calls f for every record of the journal in a directory, in order.
func Dump(fsys vfs.FS, dir string, f func(Entry) error) (wal.Report, error) {
	return each(fsys, dir, func(at wal.Pos, c *engine.Change) error {
		e := EntryOf(c)
		e.Segment, e.Offset = at.Segment, at.Offset
		return f(e)
	})
}

// each calls f for every record of the journal in a directory, in order.
func each(fsys vfs.FS, dir string, f func(at wal.Pos, c *engine.Change) error) (wal.Report, error) {
	files, err := openForReading(fsys, dir)
	if err != nil {
		return wal.Report{}, err
	}
	defer files.Close()
	tubes := make(map[string]string)
	report, err := wal.Replay(files,
		func(records []wal.Record) ([]wal.Record, error) { return records, nil },
		func(records []wal.Record) error {
			for _, rec := range records {
				c, err := record.Decode(rec.Payload, 0, tubes)
				if err != nil {
					return fmt.Errorf("segment %d at %d: %w", rec.Segment, rec.Offset, err)
				}
				if err := f(rec.Pos, &c); err != nil {
					return err
				}
			}
			return nil
		})
	return report, wrap(err)
}

// wrap adds the package name to an error.
func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("journal: %w", err)
}

func openForReading(fsys vfs.FS, dir string) (*wal.Log, error) {
	if err := CheckAdoption(fsys, dir); err != nil {
		return nil, wrap(err)
	}
	files, err := wal.Open(fsys, dir, wal.Options{ReadOnly: true})
	return files, wrap(err)
}

var kindNames = map[engine.ChangeKind]string{
	engine.JobPut:      "put",
	engine.JobState:    "state",
	engine.JobDeleted:  "deleted",
	engine.TubePaused:  "paused",
	engine.LastID:      "last-id",
	record.AppliedMark: "applied",
	engine.PolicySet:   "policy",

	engine.ScheduleSet:  "schedule",
	engine.ScheduleMark: "schedule-mark",
}

// EntryOf describes a change. Its times must count from 1970, as in an engine that Load
// filled with an epoch of 0.
func EntryOf(c *engine.Change) Entry {
	e := Entry{Kind: kindNames[c.Kind], ID: c.ID, Tube: c.Tube, Body: c.Body}
	moment := func(ns int64) *time.Time {
		t := time.Unix(0, ns).UTC()
		return &t
	}
	switch c.Kind {
	case engine.TubePaused:
		e.Delay, e.Due = &c.Delay, moment(c.Due)
	case engine.PolicySet, engine.ScheduleSet, engine.ScheduleMark:
		for line := range strings.Lines(string(c.Body)) {
			e.Settings = append(e.Settings, strings.TrimSuffix(line, "\n"))
		}
		e.Body = nil
	case record.AppliedMark:
		at, _ := record.DecodeApplied(c.Body)
		e.At, e.Index, e.Term, e.Body = moment(at.Stamp), at.Index, at.Term, nil
	case engine.JobPut, engine.JobState:
		e.Schedule = c.From
		e.State, e.Origin = c.State.String(), c.Origin
		e.Pri, e.Delay, e.TTR, e.Created = &c.Pri, &c.Delay, c.TTR, moment(c.Created)
		e.Reserves, e.Timeouts, e.Releases, e.Buries, e.Kicks = c.Reserves, c.Timeouts, c.Releases, c.Buries, c.Kicks
		switch c.State {
		case engine.Delayed:
			e.Due = moment(c.Due)
		case engine.Buried:
			e.Rank = c.Due
		}
		if f, ok := c.Failure.Decode(); ok {
			e.Attempt, e.End, e.Policy, e.Ended, e.Took = f.Attempt, f.End.String(), f.Policy, moment(f.At*1e6), float64(f.Took)/1000
			e.Identity, e.Reason = f.Identity, f.Note
			if f.Buried > 0 {
				e.Buried = moment(f.Buried * 1e6)
			}
			if f.Address.IsValid() {
				e.Address = f.Address.String()
			}
		}
	}
	return e
}
