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
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
	"github.com/beanpole-mq/beanpole/internal/jobjson"
)

const putLong = `Put a job, or many. A single argument is BODY, unless --lines or --ndjson is given.
Without BODY the body is all of standard input. With --lines each line of it is the body
of a job; with --ndjson each line is a job as 'beanpole export' writes it, and the options
apply to what a line does not say.

The ids of the jobs are printed, one a line. If a line cannot be put, those before it
were, and the error says how many of those after it.`

// putOptions say what jobs to put.
type putOptions struct {
	tube          string
	pri           uint32
	delay, ttr    time.Duration
	lines, ndjson bool
}

func newPut() *cobra.Command {
	var opt putOptions
	cmd := newCommand("put", "[TUBE] [BODY]", "put a job, or one for each line of input", func(ctx context.Context, s *session, args []string) error {
		args, err := opt.takeTube(args)
		if err != nil {
			return err
		}
		if err := s.connect(ctx); err != nil {
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
			shown = nil // the ids are there
		}
		b := kit.NewBar(shown, "jobs")
		defer b.End()
		put := 0
		return s.putAll(ctx, jobs, func(ids []uint64, _ []line) error {
			for _, id := range ids {
				if id == 0 {
					continue
				}
				if err := s.printID(id); err != nil {
					return err
				}
			}
			put += len(ids)
			b.Show(0, 0, put)
			return nil
		})
	})
	cmd.Long = putLong
	cmd.Example = `  beanpole put mail 'to: a@example.com'
  beanpole put --tube mail --delay 10m <message
  beanpole put urls --lines <urls.txt`
	f := cmd.Flags()
	f.StringVarP(&opt.tube, "tube", "t", "", "the `TUBE` to put into, like the argument (default)")
	f.Uint32VarP(&opt.pri, "pri", "p", 1024, "priority `N`; smaller is more urgent")
	kit.DurationVar(f, &opt.delay, "delay", "d", 0, 0, "ready after this `TIME`, such as 10m")
	kit.DurationVar(f, &opt.ttr, "ttr", "", time.Second, client.DefaultTTR, "time to run: a worker may hold it for this `TIME`")
	f.BoolVar(&opt.lines, "lines", false, "a job for each line of standard input")
	f.BoolVar(&opt.ndjson, "ndjson", false, "a job for each line of JSON on standard input")
	return cmd
}

// takeTube takes the tube from the arguments, and returns the others: the body or nothing.
func (opt *putOptions) takeTube(args []string) (rest []string, err error) {
	many := opt.lines || opt.ndjson
	switch {
	case opt.lines && opt.ndjson, many && len(args) > 1, many && len(args) > 0 && opt.tube != "":
		return nil, kit.UsageError("BODY, --lines and --ndjson exclude each other")
	case len(args) > 1 && opt.tube != "":
		return nil, kit.UsageError("a tube is given twice: %s and --tube %s", args[0], opt.tube)
	case len(args) > 1 || many && len(args) > 0:
		opt.tube, args = args[0], args[1:]
	}
	opt.tube = cmp.Or(opt.tube, defaultTube)
	return args, nil
}

// A line is a job, and which line of the input tells of it; 0 where there are no lines.
type line struct {
	jobjson.Job
	number int
}

// A jobSource returns one job after the other, and then io.EOF. Its errors say which
// line they are about.
type jobSource func() (line, error)

// unsaid is what a job has of which nothing else is said.
func (opt *putOptions) unsaid() jobjson.Job {
	return jobjson.Job{Tube: opt.tube, Priority: opt.pri, Delay: wholeSeconds(opt.delay), TTR: wholeSeconds(opt.ttr)}
}

// wholeSeconds rounds up, as the client does.
func wholeSeconds(d time.Duration) uint32 { return uint32((d + time.Second - 1) / time.Second) }

// source returns the jobs to put.
func (opt *putOptions) source(in io.Reader, args []string) (src jobSource, err error) {
	if err := client.CheckTube(opt.tube); err != nil {
		return src, err
	}
	switch {
	case opt.lines:
		return opt.fromLines(newLineReader(in)), nil
	case opt.ndjson:
		return fromJSON(newLineReader(in), opt.unsaid()), nil
	}
	var body []byte
	if len(args) > 0 {
		body = []byte(args[0])
	} else if body, err = io.ReadAll(in); err != nil {
		return src, err
	}
	given := false
	return func() (line, error) {
		if given {
			return line{}, io.EOF
		}
		given = true
		job := opt.unsaid()
		job.BodyBase64 = &body
		return line{Job: job}, nil
	}, nil
}

// fromLines returns a job for each line, which is its body.
func (opt *putOptions) fromLines(lines *lineReader) jobSource {
	return func() (line, error) {
		body, err := lines.next()
		job := opt.unsaid()
		job.BodyBase64 = &body
		return line{job, lines.number}, err
	}
}

// fromJSON returns the job that each line describes. What a line does not say is as unsaid
// has it.
func fromJSON(lines *lineReader, unsaid jobjson.Job) jobSource {
	return func() (line, error) {
		text, err := lines.nextFilled()
		if err != nil {
			return line{}, err
		}
		job, err := jobjson.Read(text, unsaid)
		if err == nil {
			err = client.CheckTube(job.Tube)
		}
		if err != nil {
			err = fmt.Errorf("line %d: %w", lines.number, err)
		}
		return line{job, lines.number}, err
	}
}

// A lineReader reads lines of any length.
type lineReader struct {
	r      *bufio.Reader
	number int   // of the last line, from 1 on
	offset int64 // of the next line, in bytes
}

func newLineReader(r io.Reader) *lineReader { return &lineReader{r: bufio.NewReaderSize(r, 64<<10)} }

// next returns the next line, without its end, as a copy; io.EOF after the last.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.r.ReadBytes('\n')
	if len(line) == 0 {
		return nil, err
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	l.number++
	l.offset += int64(len(line))
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), nil
}

// nextFilled is next, but for lines without anything.
func (l *lineReader) nextFilled() ([]byte, error) {
	for {
		line, err := l.next()
		if err != nil || len(bytes.TrimSpace(line)) > 0 {
			return line, err
		}
	}
}

// putBatch is how many jobs are put in one round trip.
const putBatch = 500

// putAll puts the jobs. It calls each with every batch, and the ids of the jobs of it that
// were put: all, unless there is an error, which is that of the first that was not.
func (s *session) putAll(ctx context.Context, next jobSource, each func(ids []uint64, batch []line) error) error {
	for {
		var batch []line
		var end error
		for len(batch) < putBatch && end == nil {
			var l line
			if l, end = next(); end == nil {
				batch = append(batch, l)
			}
		}
		jobs := make([]jobjson.Job, len(batch))
		for i := range batch {
			jobs[i] = batch[i].Job
		}
		ids, err := putJobs(ctx, s.conn, jobs)
		if err := each(ids, batch); err != nil {
			return err
		}
		switch {
		case err != nil:
			return s.notPut(ctx, batch, err)
		case errors.Is(end, io.EOF):
			return nil
		case end != nil:
			return end
		}
	}
}

// notPut says which job of a batch could not be put, and why.
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
		err = tooBig(ctx, s.conn, len(batch[first].Bytes()), err)
	}
	if batch[first].number == 0 {
		return err
	}
	err = fmt.Errorf("line %d: %w", batch[first].number, err)
	if put > 0 {
		err = fmt.Errorf("%w; %d of the lines after it were put, up to line %d", err, put, batch[len(batch)-1].number)
	}
	return err
}

// tooBig says how large a body may be.
func tooBig(ctx context.Context, c *client.Conn, size int, err error) error {
	st, statsErr := c.Stats(ctx)
	switch {
	case statsErr != nil:
		return err
	case int64(size) <= st.MaxJobSize:
		return fmt.Errorf("the body has %d bytes, which a limit of the server does not allow, however few jobs there are (JOB_TOO_BIG; max-memory, or bytes of a [[limit]])", size)
	}
	return fmt.Errorf("the body has %d bytes, and the server takes %d (its option -z)", size, st.MaxJobSize)
}

func (s *session) printID(id uint64) error {
	if s.JSON {
		return s.PrintJSON(map[string]uint64{"id": id})
	}
	_, err := fmt.Fprintln(s.Out, id)
	return err
}
