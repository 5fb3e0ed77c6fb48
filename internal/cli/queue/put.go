package queue

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/jobjson"
)

const putLong = `Put a job into a tube, or put a job for each line of standard input, and print the ids. Without
BODY, the body is standard input, which must not be empty. With --tube, the argument is
BODY.

With --lines, each line is the body of a job. With --ndjson, each line is a job in JSON, as
'beanpole export' writes it, and the options set its missing fields. If a line cannot be put,
the error names it, and the number of later lines that were put.`

// putOptions are the options of the command put.
type putOptions struct {
	tube          string
	pri           uint32
	delay, ttr    time.Duration
	lines, ndjson bool
}

func newPut() *cobra.Command {
	var opt putOptions
	s := new(session)
	cmd := s.command("put", "[TUBE] [BODY]", "put a job, or a job for each line of input", func(ctx context.Context, args []string) error {
		args, err := opt.takeTube(args)
		if err != nil {
			return err
		}
		if err := s.Connect(ctx); err != nil {
			return err
		}
		if len(args) == 0 {
			s.noteTerminal()
		}
		jobs, err := opt.source(s.In, args)
		if err != nil {
			return err
		}
		shown := s.Err
		if term.IsTerminal(os.Stdout.Fd()) {
			shown = nil // the terminal shows the ids
		}
		b := cliutil.NewBar(shown, "jobs")
		defer b.End()
		return s.putAll(ctx, jobs, b)
	})
	cmd.Long = putLong
	cmd.Example = `  beanpole put mail 'to: a@example.com'
  beanpole put mail --delay 10m <message
  beanpole put urls --lines <urls.txt`
	f := cmd.Flags()
	f.StringVarP(&opt.tube, "tube", "t", "", "put into `TUBE`, instead of the argument (default default)")
	f.Uint32VarP(&opt.pri, "pri", "p", 1024, "priority `N`; smaller numbers are more urgent")
	cliutil.DurationVar(f, &opt.delay, "delay", "d", 0, 0, "delay the job by this `TIME`, such as 10m")
	cliutil.DurationVar(f, &opt.ttr, "ttr", "", time.Second, client.DefaultTTR, "TTR: maximum `TIME` that a worker holds the job")
	f.BoolVar(&opt.lines, "lines", false, "put a job for each line of standard input")
	f.BoolVar(&opt.ndjson, "ndjson", false, "put a job for each line of JSON")
	cmd.RegisterFlagCompletionFunc("tube", s.completeTubes) // fails only for an undefined flag
	return cmd
}

// takeTube takes the tube from the arguments, and returns the rest: the body or nothing.
func (opt *putOptions) takeTube(args []string) (rest []string, err error) {
	many := opt.lines || opt.ndjson
	switch {
	case opt.lines && opt.ndjson, many && len(args) > 1, many && len(args) > 0 && opt.tube != "":
		return nil, exit.UsageError("BODY, --lines and --ndjson exclude each other")
	case len(args) > 1 && opt.tube != "":
		return nil, exit.UsageError("a tube is given twice: %s and --tube %s", args[0], opt.tube)
	case len(args) > 0 && opt.tube == "":
		opt.tube, args = args[0], args[1:]
	}
	opt.tube = cmp.Or(opt.tube, defaultTube)
	return args, nil
}

// A line is a job with its line number in the input. The number is zero for a single job.
type line struct {
	jobjson.Job
	number int
}

// wholeSeconds rounds up, as the client does.
func wholeSeconds(d time.Duration) uint32 { return uint32((d + time.Second - 1) / time.Second) }

// source returns the jobs to put up to the first error, which names its line.
func (opt *putOptions) source(in io.Reader, args []string) (iter.Seq2[line, error], error) {
	if err := client.CheckTube(opt.tube); err != nil {
		return nil, err
	}
	job := jobjson.Job{Tube: opt.tube, Priority: opt.pri, Delay: wholeSeconds(opt.delay), TTR: wholeSeconds(opt.ttr)}
	if opt.lines || opt.ndjson {
		return opt.each(bufio.NewReader(in), job), nil
	}
	body := []byte(strings.Join(args, "")) // at most one
	var err error
	if len(args) == 0 {
		body, err = io.ReadAll(in)
		if err == nil && len(body) == 0 {
			err = exit.UsageError("no body: standard input is empty; give it as in: beanpole put %s BODY ('' for an empty body)", opt.tube)
		}
	}
	job.BodyBase64 = &body
	return func(yield func(line, error) bool) { yield(line{Job: job}, nil) }, err
}

// each returns the jobs of the lines, in JSON or as bodies. Empty lines of JSON are
// skipped. unsaid has the values that a line does not set.
func (opt *putOptions) each(in *bufio.Reader, unsaid jobjson.Job) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		for number := 1; ; number++ {
			text, err := in.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				if err = nil; len(text) == 0 {
					return
				}
			}
			if opt.ndjson && err == nil && len(bytes.TrimSpace(text)) == 0 {
				continue
			}
			one := line{unsaid, number}
			switch {
			case err != nil:
			case opt.ndjson:
				if one.Job, err = readJob(text, unsaid); err != nil {
					err = fmt.Errorf("line %d: %w", number, err)
				}
			default:
				text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
				one.BodyBase64 = &text
			}
			if !yield(one, err) || err != nil {
				return
			}
		}
	}
}

// readJob returns a job in JSON that can be put.
func readJob(text []byte, unsaid jobjson.Job) (jobjson.Job, error) {
	job, err := jobjson.Read(text, unsaid)
	if err == nil {
		err = client.CheckTube(job.Tube)
	}
	if err == nil && job.State == "buried" {
		err = errors.New("put cannot bury a job; use 'beanpole import'")
	}
	return job, err
}

// putBatch is the number of jobs per round trip.
const putBatch = 500

// putAll puts jobs in batches and prints their ids. Its error is about the first job that
// was not put.
func (s *session) putAll(ctx context.Context, jobs iter.Seq2[line, error], b *cliutil.Bar) error {
	done := 0
	var batch []line
	for l, end := range jobs {
		if end == nil {
			batch = append(batch, l)
		}
		if end != nil || len(batch) == putBatch {
			if err := cmp.Or(s.putSome(ctx, batch), end); err != nil {
				return err
			}
			done += len(batch)
			b.Show(0, 0, done)
			batch = nil
		}
	}
	return s.putSome(ctx, batch)
}

func (s *session) putSome(ctx context.Context, batch []line) error {
	jobs := make([]client.NewJob, len(batch))
	for i := range batch {
		j := &batch[i].Job
		jobs[i] = client.NewJob{Tube: j.Tube, Body: j.Bytes(), Priority: &j.Priority, TTR: cliutil.OfSeconds(j.TTR), Delay: cliutil.OfSeconds(jobjson.DelayAgain(j))}
	}
	ids, err := s.Conn.PutMany(ctx, jobs)
	for _, id := range ids {
		if id == 0 {
			continue
		}
		if err := s.Print(map[string]uint64{"id": id}, "%d", id); err != nil {
			return err
		}
	}
	return s.notPut(ctx, batch, err)
}

// notPut returns the error of the first job of a batch that was not put.
func (s *session) notPut(ctx context.Context, batch []line, err error) error {
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
		err = tooBig(ctx, s.Conn, len(batch[first].Bytes()), err)
	}
	if batch[first].number == 0 {
		return err
	}
	err = fmt.Errorf("line %d: %w", batch[first].number, err)
	if put > 0 {
		err = fmt.Errorf("%w; %d later lines were put, up to line %d", err, put, batch[len(batch)-1].number)
	}
	return err
}

// tooBig adds the maximum size to a JOB_TOO_BIG.
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
