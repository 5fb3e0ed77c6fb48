package journalcmd

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/cmd/beanpole/internal/command"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

const dumpLong = `Print a journal, a record a line, in the order in which they were written: what
happened to the jobs. With --live, print the jobs as they are now instead, by id,
and the tubes that are paused.

A line begins with segment and offset of the record. Bodies are quoted as in Go
and shortened to 64 bytes; in JSON they are whole, in base64. Nothing is changed,
and a server may be running; then the newest records may be missing.`

const dumpExample = `  beanpole journal dump --job 17 DIR       what happened to a job
  beanpole journal dump --live --json DIR  all jobs, for programs
  beanpole journal dump --live DIR | grep -c state=buried`

// shownBody is how many bytes of a body are printed without --full.
const shownBody = 64

// A dump is what dump was asked for.
type dump struct {
	json, full, live bool
	tube             string // empty: all
	job              uint64 // 0: all

	out      *bufio.Writer
	encode   *json.Encoder
	selected map[uint64]bool // jobs of the tube, when records are dumped
}

func newDump() *cobra.Command {
	var d dump
	cmd := &cobra.Command{
		Use:                   "dump [options] DIR",
		Short:                 "print the records, or the jobs as they are now",
		Long:                  dumpLong + "\n" + exits,
		Example:               dumpExample,
		DisableFlagsInUseLine: true,
		Args:                  oneDirectory,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkDirectory(args[0]); err != nil {
				return err
			}
			return d.run(args[0], cmd.OutOrStdout())
		},
	}
	command.AddFlags(cmd.Flags(), "Options", func(fs *pflag.FlagSet) {
		fs.BoolVar(&d.live, "live", false, "the jobs as they are now")
		fs.StringVar(&d.tube, "tube", "", "only jobs of the tube `NAME`")
		fs.Func("job", "only the job with this `ID`", command.Into(&d.job, func(s string) (uint64, error) {
			return command.ParseNumber(s, "the id of a job", 1<<64-1)
		}))
		fs.BoolVar(&d.full, "full", false, "print bodies whole")
		fs.BoolVar(&d.json, "json", false, "print JSON, an object a line")
		fs.BoolP("help", "h", false, "print this help")
	})
	return cmd
}

func (d *dump) run(dir string, w io.Writer) error {
	d.out = bufio.NewWriterSize(w, 1<<16)
	d.encode = json.NewEncoder(d.out)
	d.selected = make(map[uint64]bool)
	what := d.records
	if d.live {
		what = d.jobs
	}
	if err := what(dir); err != nil {
		d.out.Flush() // what was read may be what is looked for
		return err
	}
	return d.out.Flush()
}

// records prints the records. When a server is writing them, and they have to be
// read again, it goes on after the last one.
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

// wants tells whether to print a record. Those of a job's later life do not name
// its tube.
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

// A liveJob is an Entry without what only a record has.
type liveJob struct {
	Segment uint64 `json:"segment,omitempty"` // of the job's whole record
	journal.Entry
	Offset *int64  `json:"offset,omitempty"`
	Kind   *string `json:"kind,omitempty"`
}

// jobs prints the jobs as they are now, and the pauses that are not over.
func (d *dump) jobs(dir string) error {
	eng, err := loadJournal(dir)
	if err != nil {
		return err
	}
	for _, id := range ids(eng) {
		c, _ := eng.Snapshot(id)
		if d.job != 0 && c.ID != d.job || d.tube != "" && c.Tube != d.tube {
			continue
		}
		if err := d.printLive("job", journal.EntryOf(&c)); err != nil {
			return err
		}
	}
	now := time.Now().UnixNano()
	for c := range eng.Pauses {
		if c.Due <= now || d.job != 0 || d.tube != "" && c.Tube != d.tube {
			continue
		}
		if err := d.printLive("paused", journal.EntryOf(&c)); err != nil {
			return err
		}
	}
	return nil
}

func (d *dump) printLive(what string, e journal.Entry) error {
	if d.json {
		return d.encode.Encode(liveJob{Entry: e, Segment: e.Segment})
	}
	fmt.Fprint(d.out, what)
	return d.fields(&e)
}

// fields prints what an entry says.
func (d *dump) fields(e *journal.Entry) error {
	text := func(name, s string) {
		if s != "" {
			fmt.Fprintf(d.out, " %s=%s", name, s)
		}
	}
	count := func(name string, n uint64) {
		if n != 0 {
			fmt.Fprintf(d.out, " %s=%d", name, n)
		}
	}
	number := func(name string, n *uint32) {
		if n != nil {
			fmt.Fprintf(d.out, " %s=%d", name, *n)
		}
	}
	moment := func(name string, t *time.Time) {
		if t != nil {
			fmt.Fprintf(d.out, " %s=%s", name, t.Format("2006-01-02T15:04:05.000Z"))
		}
	}
	count("id", e.ID)
	text("tube", e.Tube)
	text("state", e.State)
	number("pri", e.Pri)
	number("delay", e.Delay)
	count("ttr", uint64(e.TTR))
	moment("created", e.Created)
	moment("due", e.Due)
	count("rank", uint64(e.Rank))
	count("reserves", uint64(e.Reserves))
	count("timeouts", uint64(e.Timeouts))
	count("releases", uint64(e.Releases))
	count("buries", uint64(e.Buries))
	count("kicks", uint64(e.Kicks))
	moment("at", e.At)
	for _, f := range e.Files {
		text("file", f.Name)
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

// ids returns the ids of all jobs, ascending.
func ids(eng *engine.Engine) []uint64 {
	var ids []uint64
	for c := range eng.Snapshots {
		ids = append(ids, c.ID)
	}
	slices.Sort(ids)
	return ids
}
