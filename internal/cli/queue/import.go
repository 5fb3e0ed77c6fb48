package queue

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/api/jobjson"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

const importLong = `Put the jobs of FILE, or of standard input, which 'beanpole export' has written. Each
gets its tube, priority, time to run, delay and body, and is buried if it was; it gets
a new id, and its counters start at zero.

Every job is put at least once. If an import stops before the end, it says how many jobs
it has put, and with which --from LINE to go on. Jobs are put in batches of 500. If the
connection is lost within a batch, the server may have some of its jobs without having
said so. An import that goes on puts those a second time; to lose some rather than put
some twice, go on after the batch. A signal ends an import between two batches. One that
is killed says nothing: clear what it has put, and start over.`

// An importer puts the jobs of a file.
type importer struct {
	*session
	tube string // for all jobs; empty: each into its own
	from int    // the first line
	size int64  // of the file; 0: unknown

	put   int // jobs
	next  int // the jobs of the lines before it were put
	tried int // the last line of the last batch
}

func newImport() *cobra.Command {
	im := importer{from: 1}
	s := new(session)
	cmd := s.command("import", "[FILE]", "put the jobs of an export", func(ctx context.Context, args []string) error {
		if err := client.CheckTube(cmp.Or(im.tube, defaultTube)); err != nil {
			return err
		}
		if len(args) > 0 {
			f, err := os.Open(args[0])
			if err != nil {
				return cliutil.UsageError("%w", err)
			}
			defer f.Close()
			info, err := f.Stat()
			if err != nil {
				return err
			}
			s.In, im.size = f, info.Size()
		} else {
			s.noteTerminal()
		}
		if err := s.Connect(ctx); err != nil {
			return err
		}
		im.session = s
		return s.noteDuplicates(ctx, s.Conn, func() error { return im.run(ctx) })
	})
	cmd.Long = importLong
	cmd.Example = "  beanpole import all.ndjson\n  beanpole import --tube retry <mail.ndjson"
	f := cmd.Flags()
	f.StringVarP(&im.tube, "tube", "t", "", "put all jobs into this `TUBE` (each into its own)")
	f.Func("from", "begin with this `LINE` of the input (1)", cliutil.IntoCount(&im.from, "the line"))
	cmd.RegisterFlagCompletionFunc("tube", s.completeTubes) // fails for a flag that is not there
	return cmd
}

// run puts the jobs. Its error says how to go on.
func (im *importer) run(ctx context.Context) error {
	lines := &lineReader{Reader: bufio.NewReader(im.In)}
	if im.from > 1 {
		for _, err := range lines.all {
			if err != nil {
				return err
			}
			if lines.number == im.from-1 {
				break
			}
		}
		if lines.number < im.from-1 {
			return fmt.Errorf("the input has no line %d", im.from)
		}
	}
	im.next = im.from
	jobs := func(yield func(line, error) bool) {
		unsaid := jobjson.Job{Tube: jobjson.DefaultTube, Priority: jobjson.DefaultPriority, TTR: jobjson.DefaultTTR}
		for l, err := range fromJSON(lines, unsaid) {
			l.Tube = cmp.Or(im.tube, l.Tube)
			if !yield(l, cmp.Or(ctx.Err(), err)) {
				return
			}
		}
	}
	b := cliutil.NewBar(im.Err, "jobs")
	// A batch is not interrupted: that would leave it unknown which of its jobs were put.
	err := im.putAll(context.WithoutCancel(ctx), jobs, func(ids []uint64, batch []line) error {
		im.count(ids, batch)
		b.Show(uint64(lines.offset), uint64(im.size), im.put)
		return nil
	})
	b.End()
	switch {
	case err == nil:
		return im.printCount("imported", im.put)
	case im.next <= im.tried:
		return fmt.Errorf("%w; %d jobs were put; --from %d goes on, and may put jobs of the lines up to %d twice", err, im.put, im.next, im.tried)
	}
	return fmt.Errorf("%w; %d jobs were put; --from %d goes on", err, im.put, im.next)
}

// noteDuplicates runs put, and then says how many puts have met an equal job meanwhile, by a
// policy of the server. It counts them for all clients together.
func (s *session) noteDuplicates(ctx context.Context, c *client.Conn, put func() error) error {
	before, unknown := c.Stats(ctx)
	err := put()
	if after, failed := c.Stats(context.WithoutCancel(ctx)); failed == nil && unknown == nil && after.PolicyDeduplicated > before.PolicyDeduplicated {
		s.Note("puts that met an equal job meanwhile, of all clients: %d (the policy of their tube has 'unique')", after.PolicyDeduplicated-before.PolicyDeduplicated)
	}
	return err
}

// count notes what was put of a batch.
func (im *importer) count(ids []uint64, batch []line) {
	whole := true
	for i, l := range batch {
		im.tried = l.number
		put := ids != nil && ids[i] != 0
		if put {
			im.put++
		}
		if whole = whole && put; whole {
			im.next = l.number + 1
		}
	}
}

// putJobs puts jobs, and buries those that are to be. The ids come in the order of the
// jobs, with 0 for one that is not there as it is to be; the error is a BatchError.
func putJobs(ctx context.Context, c *client.Conn, jobs []jobjson.Job) ([]uint64, error) {
	byTube := make([]int, len(jobs)) // for a change of the tube costs a round trip
	for i := range byTube {
		byTube[i] = i
	}
	slices.SortStableFunc(byTube, func(a, b int) int { return strings.Compare(jobs[a].Tube, jobs[b].Tube) })
	news := make([]client.NewJob, len(jobs))
	for n, i := range byTube {
		news[n] = putAgain(&jobs[i])
	}
	put, err := c.PutMany(ctx, news)
	batch, ok := errors.AsType[*client.BatchError](err)
	if err != nil && !ok {
		return nil, err
	}
	ids, errs := make([]uint64, len(jobs)), make([]error, len(jobs))
	failed := false
	for n, i := range byTube {
		ids[i] = put[n]
		switch {
		case ids[i] == 0:
			errs[i] = batch.Errs[n]
		case isBuried(&jobs[i]):
			if errs[i] = buryAside(ctx, c, ids[i], jobs[i].Priority); errs[i] != nil {
				ids[i] = 0
			}
		}
		failed = failed || errs[i] != nil
	}
	if failed {
		err = &client.BatchError{Errs: errs}
	}
	return ids, err
}

// buryAside buries a job that was put with asideDelay. If it has gone, somebody has
// taken or kicked it.
func buryAside(ctx context.Context, c *client.Conn, id uint64, pri uint32) error {
	_, err := c.ReserveJob(ctx, id)
	if err == nil {
		err = c.Bury(ctx, id, pri)
	}
	return ignoreNotFound(err)
}
