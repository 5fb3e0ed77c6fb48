package journal

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/jobjson"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

const dumpLong = `Print the records of a journal in the order in which they were written, as JSON, one object
per line. Bodies are in base64. With --live, print the current jobs, in the format of
'beanpole import', and on standard error the paused tubes, policies and schedules. The command
changes nothing. If a server uses the journal, the newest records can be missing.`

const dumpExample = `  beanpole journal dump DIR | grep -w '"id":17'       the history of a job
  beanpole journal dump --live DIR | beanpole import --addr OTHER
  beanpole journal dump --live DIR | jq 'select(.tube=="mail")'`

func newDump() *cobra.Command {
	var live bool
	var cmd *cobra.Command
	cmd = newCommand("dump DIR", "print the records, or the current jobs, as JSON",
		dumpLong, dumpExample, "DIR", func(w io.Writer, args []string) error {
			dir := args[0]
			if err := checkJournal(dir); err != nil {
				return err
			}
			out := bufio.NewWriterSize(w, 1<<16)
			encode := json.NewEncoder(out)
			encode.SetEscapeHTML(false)
			var err error
			if live {
				err = dumpLive(dir, encode, cmd.ErrOrStderr())
			} else {
				err = dumpRecords(dir, encode)
			}
			return cmp.Or(err, out.Flush())
		})
	cmd.Flags().BoolVar(&live, "live", false, "print the current jobs")
	return cmd
}

// dumpRecords prints the records. If it must read the files again because a server writes
// them, it continues after the last printed record.
func dumpRecords(dir string, encode *json.Encoder) error {
	var last wal.Pos
	return readJournal(dir, func() error {
		_, err := journal.Records(vfs.OS, dir, func(at wal.Pos, c *engine.Change) error {
			if at.Compare(last) <= 0 {
				return nil
			}
			last = at
			e := entryOf(c)
			e.Segment, e.Offset = at.Segment, at.Offset
			return encode.Encode(e)
		})
		return err
	})
}

// dumpLive prints the current jobs. It writes pauses and the texts of names to notes.
func dumpLive(dir string, encode *json.Encoder, notes io.Writer) error {
	eng, err := loadJournal(dir)
	if err != nil {
		return err
	}
	now := time.Now().UnixNano()
	for _, id := range inOrder(eng) {
		c, _ := eng.Snapshot(id)
		if err := encode.Encode(jobOf(&c, now)); err != nil {
			return err
		}
	}
	for c := range eng.Pauses {
		if c.Due <= now {
			continue
		}
		if err := cliutil.Note(notes, "tube %s is paused until %s", c.Tube, time.Unix(0, c.Due).Format(time.RFC3339)); err != nil {
			return err
		}
	}
	for c := range eng.Named() {
		e := entryOf(&c)
		if err := cliutil.Note(notes, "the %s of %s is %s", e.Kind, c.Tube, strings.Join(e.Settings, " ")); err != nil {
			return err
		}
	}
	return nil
}

// inOrder returns the ids of all jobs in ascending order, except that buried jobs come
// last, in the order of burying. An import keeps this order.
func inOrder(eng *engine.Engine) (ids []uint64) {
	rank := make(map[uint64]int64) // rank of a buried job
	for c := range eng.Snapshots {
		ids = append(ids, c.ID)
		if c.State == engine.Buried {
			rank[c.ID] = c.Due
		}
	}
	slices.SortFunc(ids, func(a, b uint64) int { return cmp.Or(cmp.Compare(rank[a], rank[b]), cmp.Compare(a, b)) })
	return ids
}

// jobOf returns a job in the form that 'beanpole import' reads.
func jobOf(c *engine.Change, now int64) *jobjson.Job {
	failure, failed := c.Failure.Decode()
	j := &jobjson.Job{
		ID: c.ID, Tube: c.Tube, State: c.State.String(), Priority: c.Pri, Size: int64(len(c.Body)),
		Age: max(0, now-c.Created) / int64(time.Second), Delay: c.Delay, TTR: c.TTR,
		Reserves: uint64(c.Reserves), Timeouts: uint64(c.Timeouts), Releases: uint64(c.Releases), Buries: uint64(c.Buries), Kicks: uint64(c.Kicks),
		Failure: jobjson.FailureOf(failure, failed, c.State == engine.Buried),
	}
	switch {
	case c.State == engine.Delayed && c.Due > now:
		j.TimeLeft = (c.Due - now) / int64(time.Second)
	case c.State == engine.Delayed:
		j.State = engine.Ready.String() // the state after a server has read the journal
	}
	jobjson.SetBody(j, c.Body)
	return j
}

// An entry is a record in readable form. JSON contains only the fields of its kind.
type entry struct {
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

	Failure *admin.Failure `json:"failure,omitempty"` // end of the last attempt

	At    *time.Time `json:"at,omitempty"`    // creation time of an applied entry of a cluster's log
	Index uint64     `json:"index,omitempty"` // index of that entry
	Term  uint64     `json:"term,omitempty"`  // term of that entry
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

// entryOf describes a change. Its times must count from 1970, as in an engine that Load
// filled with an epoch of 0.
func entryOf(c *engine.Change) entry {
	e := entry{Kind: kindNames[c.Kind], ID: c.ID, Tube: c.Tube, Body: c.Body}
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
		failure, ok := c.Failure.Decode()
		e.Failure = jobjson.FailureOf(failure, ok, true)
	}
	return e
}
