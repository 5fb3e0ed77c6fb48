package journal

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/advice"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/journal/binlog"
	"github.com/beanpole-mq/beanpole/internal/journal/record"
	"github.com/beanpole-mq/beanpole/internal/op"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

const checkLong = `Read a whole journal, and print its contents and damage. The command changes nothing. If a
server uses the journal, the newest records can be missing. For a directory with beanstalkd
files, print the jobs that a server would import from it.`

func newCheck() *cobra.Command {
	return newCommand("check DIR", "read a whole journal and report damage",
		checkLong, "  beanpole journal check /var/lib/beanpole", "DIR", func(w io.Writer, args []string) error {
			ins := inspection{dir: args[0]}
			if err := ins.inspect(); err != nil {
				return err
			}
			ins.print(w)
			return ins.verdict()
		})
}

// An inspection contains the findings of check.
type inspection struct {
	dir    string
	holder string // process that uses the directory; empty if there is none

	damage []wal.Damage
	report wal.Report
	tally  tally

	incomplete bool // whether the import of beanstalkd files was interrupted
	adopted    bool // whether the journal has imported the remaining files

	applied journal.Applied // last Applied of a cluster member, or zero

	binlog  binlog.Report // report about the beanstalkd files to be imported
	theirs  tally
	waiting []string // beanstalkd files
	mixed   bool     // whether they are next to a journal that has not imported them
}

func (ins *inspection) inspect() (err error) {
	if ins.holder, err = advice.LockOwner(ins.dir); err != nil {
		return err
	}
	var why error
	err = readJournal(ins.dir, func() error {
		why = ins.count()
		return why
	})
	if first, ok := errors.AsType[*wal.CorruptError](why); ok {
		err = ins.findDamage(first)
	}
	if err != nil {
		return err
	}
	return ins.lookForBinlog()
}

// findDamage finds further damage after the first, which ended the reading.
func (ins *inspection) findDamage(first *wal.CorruptError) error {
	others, err := wal.Check(vfs.OS, ins.dir, func([]byte) error { return nil })
	if !slices.ContainsFunc(others, func(d wal.Damage) bool { return d.File == first.File && d.Offset == first.Offset }) {
		ins.damage = []wal.Damage{{File: first.File, Offset: first.Offset, Reason: first.Reason}}
	}
	ins.damage = append(ins.damage, others...)
	if errors.Is(err, wal.ErrCorrupt) {
		return nil // this is the first damage
	}
	return err
}

// count counts the jobs of a journal without damage.
func (ins *inspection) count() (err error) {
	ins.tally = make(tally)
	ins.report, err = journal.Records(vfs.OS, ins.dir, func(_ wal.Pos, c *engine.Change) error {
		ins.tally.count(c)
		if c.Kind == record.AppliedMark {
			ins.applied, _ = record.DecodeApplied(c.Body)
		}
		return nil
	})
	if ins.incomplete = errors.Is(err, journal.ErrAdopting); ins.incomplete {
		return nil
	}
	return err
}

// lookForBinlog examines beanstalkd files.
func (ins *inspection) lookForBinlog() error {
	var err error
	if ins.waiting, err = binlog.Files(vfs.OS, ins.dir); err != nil {
		return readError(ins.dir, err)
	}
	if ins.adopted, err = journal.Adopted(vfs.OS, ins.dir); err != nil {
		return readError(ins.dir, err)
	}
	if len(ins.waiting) == 0 || ins.adopted {
		return nil
	}
	ins.mixed = ins.report.Segments > 0 || ins.report.Records > 0
	ins.theirs = make(tally)
	ins.binlog, err = binlog.Read(vfs.OS, ins.dir, binlog.Options{}, func(c engine.Change) error {
		ins.theirs.count(&c)
		return nil
	})
	if err != nil {
		return readError(ins.dir, err)
	}
	return nil
}

// print prints a line for each finding.
func (ins *inspection) print(w io.Writer) {
	line := func(what, format string, args ...any) {
		fmt.Fprintf(w, "%-11s %s\n", what, fmt.Sprintf(format, args...))
	}
	line("directory", "%s", ins.dir)
	if ins.holder != "" {
		line("used by", "%s, which might be writing; the newest records might be missing here", ins.holder)
	}
	switch {
	case len(ins.damage) > 0:
		for _, d := range ins.damage {
			line("damage", "%s", d)
		}
	case ins.report.Records == 0:
		line("records", "none")
	default:
		line("segments", "%d", ins.report.Segments)
		line("records", "%d", ins.report.Records)
		line("bytes", "%d", ins.report.Bytes)
		line("jobs", "%s", ins.tally)
		if a := ins.applied; a.Index > 0 {
			at := ""
			if a.Stamp > 0 { // an entry that changes the members has no time
				at = ", of " + time.Unix(0, a.Stamp).UTC().Format(time.RFC3339)
			}
			line("applied", "entry %d of term %d%s, of the cluster's log", a.Index, a.Term, at)
		}
	}
	for _, t := range ins.report.Torn {
		if ins.holder != "" {
			break // the server is writing there
		}
		why := "of a write that a crash interrupted"
		if t.Closed {
			why = "after the closing record"
		} else if t.Records > 0 {
			why = fmt.Sprintf("that were never synced, with a damaged record and %d intact ones", t.Records)
		}
		line("torn tail", "%s at offset %d: %d bytes %s; the next start removes them", filepath.Base(t.File), t.Offset, t.Length, why)
	}
	if ins.incomplete {
		line("takeover", "interrupted; the next start repeats it")
	}
	if len(ins.waiting) > 0 {
		ins.printBinlog(line)
	}
}

func (ins *inspection) printBinlog(line func(what, format string, args ...any)) {
	const what = "beanstalkd"
	switch {
	case ins.mixed:
		line(what, "%d files that were not imported into the journal", len(ins.waiting))
	case ins.adopted:
		line(what, "%d imported files; the next start renames them", len(ins.waiting))
		return
	default:
		line(what, "%d files, which the next start imports", len(ins.waiting))
	}
	line(what, "jobs %s", ins.theirs)
	for _, d := range ins.binlog.Damage {
		line(what, "damage: %s", d)
	}
}

// verdict returns the error of check.
func (ins *inspection) verdict() error {
	switch {
	case len(ins.damage) > 0:
		return fmt.Errorf("directory %s: the journal is damaged in %s (%s)", ins.dir, cliutil.Count(len(ins.damage), "place"), advice.Repair(ins.dir))
	case ins.mixed:
		return fmt.Errorf("a server would not start: %w", advice.Explain(ins.dir, journal.ErrMixed))
	case ins.incomplete && len(ins.waiting) == 0:
		return fmt.Errorf("a server would not start: %w", advice.Explain(ins.dir, journal.ErrAdopting))
	case len(ins.binlog.Damage) > 0:
		return fmt.Errorf("directory %s: beanstalkd files are damaged (a server that starts there imports the intact records)", ins.dir)
	case ins.report.Segments == 0 && len(ins.waiting) == 0:
		return checkJournal(ins.dir)
	}
	return nil
}

// A tally contains the state of each job, as an index in op.IdleStates. It needs far less
// memory than an engine: a check beside a large server must not take the server's memory.
type tally map[uint64]uint8

// count applies a change to its job. It ignores changes of unknown jobs.
func (t tally) count(c *engine.Change) {
	_, known := t[c.ID]
	switch {
	case c.Kind == engine.JobPut, c.Kind == engine.JobState && known:
		t[c.ID] = uint8(slices.Index(op.IdleStates, c.State.String()))
	case c.Kind == engine.JobDeleted:
		delete(t, c.ID)
	}
}

func (t tally) String() string {
	var counts [3]int
	for _, s := range t {
		counts[s]++
	}
	text, sep := fmt.Sprint(len(t)), ": "
	for i, n := range counts {
		if n > 0 {
			text += fmt.Sprintf("%s%d %s", sep, n, op.IdleStates[i])
			sep = ", "
		}
	}
	return text
}
