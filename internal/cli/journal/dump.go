package journal

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/flags"
	"github.com/beanpole-mq/beanpole/internal/jobjson"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

const dumpLong = `Print the records of a journal in the order in which they were written, one per line. With
--live, print the current jobs by id, and the paused tubes.

A line starts with the segment and the offset of the record. Bodies are quoted as in Go, and
cut after 64 bytes. In JSON they are complete: in base64 for records, and in the format of
'beanpole import' with --live, with paused tubes on standard error. The command changes
nothing. If a server uses the journal, the newest records can be missing.`

const dumpExample = `  beanpole journal dump --job 17 DIR       what happened to a job
  beanpole journal dump --live --json DIR | beanpole import --addr OTHER
  beanpole journal dump --live DIR | grep -c state=buried`

// shownBody is the number of bytes of a body that are printed without --full.
const shownBody = 64

// A dump holds the options of the command dump.
type dump struct {
	json, full, live bool
	tube             string // empty: all
	job              uint64 // 0: all

	out      *bufio.Writer
	notes    io.Writer
	encode   *json.Encoder
	selected map[uint64]bool // jobs of the tube, when records are dumped
}

func newDump() *cobra.Command {
	var d dump
	var cmd *cobra.Command
	cmd = newCommand("dump [options] DIR", "print the records, or the current jobs",
		dumpLong, dumpExample, "DIR", func(w io.Writer, args []string) error {
			d.notes = cmd.ErrOrStderr()
			return d.run(args[0], w)
		})
	fs := cmd.Flags()
	fs.BoolVar(&d.live, "live", false, "print the current jobs")
	fs.StringVar(&d.tube, "tube", "", "print jobs of the tube `NAME` only")
	fs.Func("job", "print the job with this `ID` only", flags.Into(&d.job, func(s string) (uint64, error) {
		return flags.Number(s, "the id of a job", 1<<64-1)
	}))
	fs.BoolVar(&d.full, "full", false, "print complete bodies")
	fs.BoolVar(&d.json, "json", false, "print JSON, one object per line")
	return cmd
}

func (d *dump) run(dir string, w io.Writer) error {
	if err := checkJournal(dir); err != nil {
		return err
	}
	d.out = bufio.NewWriterSize(w, 1<<16)
	d.encode = json.NewEncoder(d.out)
	d.encode.SetEscapeHTML(false)
	d.selected = make(map[uint64]bool)
	what := d.records
	if d.live {
		what = d.jobs
	}
	if err := what(dir); err != nil {
		d.out.Flush() // print the results so far
		return err
	}
	return d.out.Flush()
}

// records prints the records. If a running server makes it read the files again, it
// continues after the last printed record.
func (d *dump) records(dir string) error {
	var last wal.Pos
	return readJournal(dir, func() error {
		_, err := journal.Dump(vfs.OS, dir, func(e journal.Entry) error {
			at := wal.Pos{Segment: e.Segment, Offset: e.Offset}
			if at.Compare(last) <= 0 || !d.wants(&e) {
				return nil
			}
			last = at
			return d.record(&e)
		})
		return err
	})
}

func (d *dump) record(e *journal.Entry) error {
	if d.json {
		return d.encode.Encode(e)
	}
	fmt.Fprintf(d.out, "%d:%d %s", e.Segment, e.Offset, e.Kind)
	return d.fields(e)
}

// wants reports whether to print a record. Only the first record of a job names its tube.
func (d *dump) wants(e *journal.Entry) bool {
	if d.job != 0 && (e.ID != d.job || e.Kind == "last-id") {
		return false
	}
	if d.tube == "" {
		return true
	}
	switch e.Kind {
	case "put":
		if e.Tube == d.tube {
			d.selected[e.ID] = true
		}
		return e.Tube == d.tube
	case "state":
		return d.selected[e.ID]
	case "deleted":
		was := d.selected[e.ID]
		delete(d.selected, e.ID)
		return was
	}
	return e.Tube == d.tube
}

// jobs prints the current jobs, pauses, and policies set at run time. In JSON only jobs
// are part of the output; pauses and policies are notes on standard error.
func (d *dump) jobs(dir string) error {
	eng, err := loadJournal(dir)
	if err != nil {
		return err
	}
	now := time.Now().UnixNano()
	print := func(what string, c *engine.Change, inJSON func() error) error {
		switch {
		case d.job != 0 && c.ID != d.job, d.tube != "" && c.Tube != d.tube:
			return nil
		case d.json:
			return inJSON()
		}
		e := journal.EntryOf(c)
		fmt.Fprint(d.out, what)
		return d.fields(&e)
	}
	note := func(format string, args ...any) error {
		return cliutil.Note(d.notes, format, args...)
	}
	for _, id := range d.order(eng) {
		c, _ := eng.Snapshot(id)
		if err := print("job", &c, func() error { return d.encode.Encode(jobOf(&c, now)) }); err != nil {
			return err
		}
	}
	for c := range eng.Pauses {
		if c.Due <= now {
			continue
		}
		if err := print("paused", &c, func() error {
			return note("tube %s is paused until %s", c.Tube, time.Unix(0, c.Due).Format(time.RFC3339))
		}); err != nil {
			return err
		}
	}
	for c := range eng.Named() {
		e := journal.EntryOf(&c)
		if err := print(e.Kind, &c, func() error {
			return note("the %s of %s is %s", e.Kind, c.Tube, strings.Join(e.Settings, " "))
		}); err != nil {
			return err
		}
	}
	return nil
}

// jobOf returns a job as 'beanpole import' reads it.
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
		j.State = engine.Ready.String() // as it will be when a server reads it
	}
	jobjson.SetBody(j, c.Body)
	return j
}

// fields prints an entry with the names of its fields in JSON.
func (d *dump) fields(e *journal.Entry) error {
	all := reflect.ValueOf(e).Elem()
	for i := range all.NumField() {
		name, _, _ := strings.Cut(all.Type().Field(i).Tag.Get("json"), ",")
		if all.Field(i).IsZero() || slices.Contains([]string{"segment", "offset", "kind", "body"}, name) {
			continue
		}
		if name == "reason" {
			fmt.Fprintf(d.out, " %s=%q", name, e.Reason)
			continue
		}
		switch value := reflect.Indirect(all.Field(i)).Interface().(type) {
		case time.Time:
			fmt.Fprintf(d.out, " %s=%s", name, value.Format("2006-01-02T15:04:05.000Z"))
		case []string:
			fmt.Fprint(d.out, " ", cliutil.Line(strings.Join(value, " ")))
		default:
			fmt.Fprintf(d.out, " %s=%s", name, cliutil.Line(fmt.Sprint(value)))
		}
	}
	if e.Kind == "put" {
		d.body(e.Body)
	}
	_, err := fmt.Fprintln(d.out)
	return err
}

func (d *dump) body(body []byte) {
	fmt.Fprintf(d.out, " bytes=%d body=", len(body))
	if len(body) > shownBody && !d.full {
		fmt.Fprint(d.out, strconv.Quote(string(body[:shownBody])), "...")
		return
	}
	fmt.Fprint(d.out, strconv.Quote(string(body)))
}

// order returns the ids of all jobs, ascending. In JSON the buried jobs come last, in the
// order of burying, which an import keeps.
func (d *dump) order(eng *engine.Engine) (ids []uint64) {
	rank := make(map[uint64]int64) // rank of a buried job in JSON
	for c := range eng.Snapshots {
		ids = append(ids, c.ID)
		if d.json && c.State == engine.Buried {
			rank[c.ID] = c.Due
		}
	}
	slices.SortFunc(ids, func(a, b uint64) int { return cmp.Or(cmp.Compare(rank[a], rank[b]), cmp.Compare(a, b)) })
	return ids
}
