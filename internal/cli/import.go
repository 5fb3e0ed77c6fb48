package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/jobjson"
)

const importLong = `Put the jobs of FILE, or of standard input, which 'beanpole export' has written. Each
gets its tube, priority, time to run, delay and body, and is buried if it was; it gets
a new id, and its counters start at zero.

FILE.progress keeps how far the import of FILE has come (or the file of --progress,
which also works with standard input). If the command is interrupted, killed, or loses
its server, run it again in the same way. It goes on where it was, and each job is put
once. When all jobs have been put, the exit code is 0, and further runs do nothing; to
import FILE again, remove FILE.progress.

How that works: jobs are put in batches of 1000, and the place of each batch is written
to FILE.progress before it is put. If the command stops within a batch, it is unknown
which of its jobs the server has. So the next run looks at the jobs that are newer than
the batch before, and does not put again those that are equal in tube, priority, time
to run and body. It cannot tell whether a job is missing because it was not put, or
because a worker has taken it since. If the server's counters show that jobs have gone,
the command stops and says so. Then choose: --doubtful put (a job may be done twice) or
--doubtful skip (a job may be lost). This cannot happen while no jobs are deleted: pause
the tubes to be sure. Jobs that other programs put meanwhile, and that are equal in all
that, count as jobs of the file.`

// importBatch is how many jobs are put in one round trip.
const importBatch = 1000

// importOptions say what to do with the jobs.
type importOptions struct {
	tube     string
	progress string
	doubtful string
}

func newImport() *cobra.Command {
	var opt importOptions
	cmd := newCommand("import", "[FILE]", "put the jobs of an export; can be resumed", func(ctx context.Context, s *session, args []string) error {
		if opt.doubtful != "" && opt.doubtful != "put" && opt.doubtful != "skip" {
			return usageError("--doubtful is put or skip")
		}
		in, size := s.in, int64(0)
		if len(args) > 0 {
			f, err := os.Open(args[0])
			if err != nil {
				return usageError("%w", err)
			}
			defer f.Close()
			info, err := f.Stat()
			if err != nil {
				return err
			}
			in, size = f, info.Size()
			opt.progress = cmp.Or(opt.progress, args[0]+".progress")
		} else {
			s.noteTerminal()
		}
		c, err := s.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		im := &importer{session: s, conn: c, opt: opt, in: in, size: size}
		return im.run(ctx)
	})
	cmd.Long = importLong
	cmd.Example = "  beanpole import all.ndjson\n  beanpole import --tube retry <mail.ndjson"
	f := cmd.Flags()
	f.StringVarP(&opt.tube, "tube", "t", "", "put all jobs into this `TUBE` (each into its own)")
	f.StringVar(&opt.progress, "progress", "", "keep in this `FILE` how far it has come (FILE.progress)")
	f.StringVar(&opt.doubtful, "doubtful", "", "`DO` put or skip jobs of which nobody knows whether\nthey were put")
	return cmd
}

// An importer puts the jobs of a file.
type importer struct {
	*session
	conn *client.Conn
	opt  importOptions
	in   io.Reader
	size int64 // of the file; 0: not known

	lines *lineReader
	bad   error         // of the line after the last batch
	again []jobjson.Job // a batch that was read before
	state importState
	most  int64 // bytes of a body that the server takes
	put   int   // jobs that this run has put

	// Where the last batch ends.
	endLine   int
	endOffset int64
}

func (im *importer) run(ctx context.Context) error {
	var err error
	if im.state, err = loadState(im.opt.progress, im.server.addr); err != nil {
		return err
	}
	if im.state.Done {
		im.note("all %d jobs were put before; to put them again, remove %s", im.state.Jobs, im.opt.progress)
		return nil
	}
	if err := im.seek(); err != nil {
		return err
	}
	if err := im.settle(ctx); err != nil {
		return err
	}
	b := im.newBar("jobs")
	defer b.end()
	for {
		if ctx.Err() != nil {
			return im.interrupted()
		}
		// A batch is not interrupted, so that only a kill leaves it in doubt.
		more, err := im.batch(context.WithoutCancel(ctx))
		if err != nil {
			b.end()
			return errors.Join(im.explain(err), im.state.save(im.opt.progress)) // the batch before is done
		}
		b.show(uint64(im.state.Offset), uint64(im.size), im.put)
		if !more {
			break
		}
	}
	b.end()
	im.state.Done = true
	if err := im.state.save(im.opt.progress); err != nil {
		return err
	}
	if im.json {
		return im.printJSON(map[string]int{"imported": im.put, "total": im.state.Jobs})
	}
	_, err = fmt.Fprintf(im.out, "imported %d\n", im.put)
	return err
}

// seek goes to where the last run has come to.
func (im *importer) seek() error {
	if im.size > 0 && im.size < im.state.Offset {
		return fmt.Errorf("%s speaks of a longer file; if this is another one, remove it", im.opt.progress)
	}
	if _, err := io.CopyN(io.Discard, im.in, im.state.Offset); err != nil {
		return fmt.Errorf("%s speaks of a longer input: %w", im.opt.progress, err)
	}
	im.lines = newLineReader(im.in)
	im.lines.number, im.lines.offset = im.state.Lines, im.state.Offset
	im.endLine, im.endOffset = im.state.Lines, im.state.Offset
	return nil
}

// interrupted says how to go on.
func (im *importer) interrupted() error {
	if im.opt.progress == "" {
		return fmt.Errorf("interrupted: %d jobs were put, lines 1 to %d", im.put, im.state.Lines)
	}
	if err := im.state.save(im.opt.progress); err != nil {
		return err
	}
	return fmt.Errorf("interrupted after %d jobs; the same command goes on from there", im.state.Jobs)
}

// explain says how to go on after an error.
func (im *importer) explain(err error) error {
	if im.opt.progress == "" {
		return fmt.Errorf("%w; the jobs of the lines up to %d were put", err, im.state.Lines)
	}
	return fmt.Errorf("%w; %d jobs were put, the same command goes on from there", err, im.state.Jobs)
}

// read reads the jobs of a batch, at most n, the tubes together. A line that cannot
// be put ends the batch before it; it is an error when it comes first.
func (im *importer) read(n int) ([]jobjson.Job, error) {
	var jobs []jobjson.Job
	for len(jobs) < n && im.bad == nil {
		line, err := im.lines.nextFilled()
		if errors.Is(err, io.EOF) {
			break
		}
		var j jobjson.Job
		if err == nil {
			j, err = im.parse(line)
		}
		if err != nil {
			im.bad = fmt.Errorf("line %d: %w", im.lines.number, err)
			break
		}
		im.endLine, im.endOffset = im.lines.number, im.lines.offset
		jobs = append(jobs, j)
	}
	if len(jobs) == 0 {
		return nil, im.bad
	}
	slices.SortStableFunc(jobs, func(a, b jobjson.Job) int { return strings.Compare(a.Tube, b.Tube) })
	return jobs, nil
}

// unsaid is what a job has that says nothing of it.
var unsaid = jobjson.Job{Tube: jobjson.DefaultTube, Priority: jobjson.DefaultPriority, TTR: jobjson.DefaultTTR}

// parse reads a job that can be put.
func (im *importer) parse(line []byte) (jobjson.Job, error) {
	j, err := jobjson.Read(line, unsaid)
	if err != nil {
		return j, err
	}
	if im.most > 0 && j.Size > im.most {
		return j, bodyTooBig(j.Size, im.most)
	}
	j.Tube = cmp.Or(im.opt.tube, j.Tube)
	return j, client.CheckTube(j.Tube)
}

// batch puts the next jobs. more is false when there are none.
func (im *importer) batch(ctx context.Context) (more bool, err error) {
	st, err := im.conn.Stats(ctx)
	if err != nil {
		return false, err
	}
	im.most = st.MaxJobSize
	jobs := im.again
	if im.again = nil; jobs == nil {
		if jobs, err = im.read(importBatch); err != nil || len(jobs) == 0 {
			return false, err
		}
	}
	rest := make([]jobjson.Job, 0, len(jobs))
	for i, j := range jobs {
		if !slices.Contains(im.state.Skip, i) {
			rest = append(rest, j)
		}
	}
	im.state.Batch = len(jobs)
	if err := im.state.save(im.opt.progress); err != nil {
		return false, err
	}
	ids, err := putJobs(ctx, im.conn, rest)
	if err != nil {
		return false, err
	}
	im.put += len(rest)
	im.state.Jobs += len(jobs)
	im.state.Batch, im.state.Skip = 0, nil
	im.state.Lines, im.state.Offset = im.endLine, im.endOffset
	im.state.After = max(im.state.After, slices.Max(append(ids, 0)))
	im.state.Server, im.state.Puts = st.ID, st.TotalJobs+uint64(len(rest))
	return true, nil
}

// putJobs puts jobs, and buries those that are to be. The ids come in their order.
func putJobs(ctx context.Context, c *client.Conn, jobs []jobjson.Job) (ids []uint64, err error) {
	news := make([]client.NewJob, len(jobs))
	for i := range jobs {
		news[i] = putAgain(&jobs[i])
	}
	ids, err = c.PutMany(ctx, news)
	for i, id := range ids { // also if others could not be put
		if id != 0 && isBuried(&jobs[i]) {
			err = cmp.Or(err, buryAside(ctx, c, id, jobs[i].Priority))
		}
	}
	return ids, err
}

// buryAfterKill buries a job that a run which was killed has put for that, unless it is.
// It may be aside, ready if that run had reserved it, or still reserved if the server has
// not noticed that its connection is gone.
func buryAfterKill(ctx context.Context, c *client.Conn, id uint64, pri uint32) error {
	for range 100 {
		st, err := c.StatsJob(ctx, id)
		switch {
		case err != nil:
			return ignoreNotFound(err)
		case st.State == client.StateBuried:
			return nil
		case st.State != client.StateReserved:
			if err := buryAside(ctx, c, id, pri); err != nil {
				return err
			}
			continue
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return fmt.Errorf("job %d is to be buried, and a connection holds it; run the same command again when that is gone", id)
}

// buryAside buries a job that was put with asideDelay. If it has gone, somebody has
// taken or kicked it.
func buryAside(ctx context.Context, c *client.Conn, id uint64, pri uint32) error {
	j, err := c.ReserveJob(ctx, id)
	if err == nil {
		err = j.Bury(ctx, client.PriorityOf(pri))
	}
	if errors.Is(err, client.ErrNotFound) {
		return nil
	}
	return err
}
