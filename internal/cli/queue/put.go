package queue

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

const putLong = `Put a job into a tube, or put a job for each line of standard input, and print the ids. Without
BODY, the body is standard input, which must not be empty. With --tube, the argument is
BODY.

With --lines, each line is the body of a job. If a line cannot be put, the error names it, and
the number of later lines that were put. 'beanpole import' puts jobs in JSON.`

func newPut() *cobra.Command {
	var job client.NewJob
	var pri uint32
	var lines bool
	s := new(session)
	cmd := s.command("put", "[TUBE] [BODY]", "put a job, or a job for each line of input", func(ctx context.Context, args []string) error {
		switch {
		case lines && (len(args) > 1 || len(args) > 0 && job.Tube != ""):
			return exit.UsageError("BODY and --lines cannot be used together")
		case len(args) > 1 && job.Tube != "":
			return exit.UsageError("a tube is given twice: %s and --tube %s", args[0], job.Tube)
		case len(args) > 0 && job.Tube == "":
			job.Tube, args = args[0], args[1:]
		}
		job.Tube, job.Priority = cmp.Or(job.Tube, defaultTube), &pri
		if err := client.CheckTube(job.Tube); err != nil {
			return err
		}
		if err := s.Connect(ctx); err != nil {
			return err
		}
		if len(args) == 0 {
			s.noteTerminal()
		}
		if lines {
			return s.putLines(ctx, job)
		}
		if len(args) > 0 {
			job.Body = []byte(args[0])
		} else if body, err := io.ReadAll(s.In); err != nil {
			return err
		} else if job.Body = body; len(body) == 0 {
			return exit.UsageError("no body: standard input is empty; give the body as an argument: beanpole put %s BODY ('' for an empty body)", job.Tube)
		}
		return s.putSome(ctx, []client.NewJob{job}, -1)
	})
	cmd.Long = putLong
	cmd.Example = `  beanpole put mail 'to: a@example.com'
  beanpole put mail --delay 10m <message
  beanpole put urls --lines <urls.txt`
	f := cmd.Flags()
	f.StringVarP(&job.Tube, "tube", "t", "", "put into `TUBE`, instead of the argument (default \"default\")")
	f.Uint32VarP(&pri, "pri", "p", 1024, "priority `N`; smaller numbers are more urgent")
	cliutil.DurationVar(f, &job.Delay, "delay", "d", 0, 0, "delay the job by this `TIME`, such as 10m")
	cliutil.DurationVar(f, &job.TTR, "ttr", "", time.Second, client.DefaultTTR, "TTR: maximum `TIME` that a worker holds the job")
	f.BoolVar(&lines, "lines", false, "put a job for each line of standard input")
	cmd.RegisterFlagCompletionFunc("tube", s.completeTubes) // fails only for an undefined flag
	return cmd
}

// wholeSeconds rounds up, as the client does.
func wholeSeconds(d time.Duration) uint32 { return uint32((d + time.Second - 1) / time.Second) }

// putBatch is the number of jobs per round trip.
const putBatch = 500

// putLines puts a job for each line of the input. Its error is about the first line that
// was not put.
func (s *session) putLines(ctx context.Context, job client.NewJob) error {
	shown := s.Err
	if term.IsTerminal(os.Stdout.Fd()) {
		shown = io.Discard // the terminal shows the ids
	}
	b := cliutil.NewProgress(shown)
	defer b.End()
	in := bufio.NewReader(s.In)
	var batch []client.NewJob
	for done := 0; ; {
		text, end := in.ReadBytes('\n')
		if len(text) > 0 && (end == nil || errors.Is(end, io.EOF)) {
			job.Body = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
			batch = append(batch, job)
		}
		if end != nil || len(batch) == putBatch {
			if err := s.putSome(ctx, batch, done); err != nil {
				return err
			}
			done += len(batch)
			b.Show(uint64(done), 0)
			batch = nil
		}
		if errors.Is(end, io.EOF) {
			return nil
		} else if end != nil {
			return end
		}
	}
}

// putSome puts jobs and prints their ids. Its error is about the first job that was not
// put. It names the line if the number of lines before the jobs is not negative.
func (s *session) putSome(ctx context.Context, jobs []client.NewJob, before int) error {
	ids, err := s.Conn.PutMany(ctx, jobs)
	for _, id := range ids {
		if id == 0 {
			continue
		}
		if err := s.Print(map[string]uint64{"id": id}, "%d", id); err != nil {
			return err
		}
	}
	e, ok := errors.AsType[*client.BatchError](err)
	if !ok {
		return err
	}
	first, put := -1, 0
	for i, err := range e.Errs {
		switch {
		case err != nil && first < 0:
			first = i
		case err == nil && first >= 0:
			put++
		}
	}
	err = e.Errs[first]
	if errors.Is(err, client.ErrJobTooBig) {
		err = tooBig(ctx, s.Conn, len(jobs[first].Body), err)
	}
	if before >= 0 {
		err = fmt.Errorf("line %d: %w", before+first+1, err)
	}
	if put > 0 {
		err = fmt.Errorf("%w; %d later lines were put, up to line %d", err, put, before+len(jobs))
	}
	return err
}

// tooBig adds the maximum size to a JOB_TOO_BIG error.
func tooBig(ctx context.Context, c *client.Conn, size int, err error) error {
	st, statsErr := c.Stats(ctx)
	switch {
	case statsErr != nil:
		return err
	case int64(size) <= st.MaxJobSize:
		return fmt.Errorf("the body has %d bytes, more than a limit of the server allows (JOB_TOO_BIG; max-memory, or bytes of a [[limit]])", size)
	}
	return fmt.Errorf("the body has %d bytes; the server accepts up to %d (its option -z)", size, st.MaxJobSize)
}
