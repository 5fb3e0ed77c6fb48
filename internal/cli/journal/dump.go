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

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/jobjson"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

const dumpLong = `Print the records of a journal in the order in which they were written, as JSON, one object
per line. Bodies are in base64. With --live, print the current jobs, in the format of
'beanpole import', and on standard error the paused tubes, policies and schedules. The command
changes nothing. If a server uses the journal, the newest records can be missing.`

const dumpExample = `  beanpole journal dump DIR | grep -w '"id":17'       what happened to a job
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
			err := error(nil)
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
		_, err := journal.Dump(vfs.OS, dir, func(e journal.Entry) error {
			at := wal.Pos{Segment: e.Segment, Offset: e.Offset}
			if at.Compare(last) <= 0 {
				return nil
			}
			last = at
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
		e := journal.EntryOf(&c)
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
