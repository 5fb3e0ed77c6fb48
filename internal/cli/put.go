package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
)

const putLong = `Put a job, or many. Without BODY the body is what comes on standard input, all of
it. With --lines each line of standard input is the body of a job; with --ndjson
each line is a job as 'beanpole export' writes it.

The ids of the jobs are printed, one a line.`

// putOptions say what jobs to put.
type putOptions struct {
	tube          string
	pri           uint32
	delay, ttr    time.Duration
	lines, ndjson bool
}

func newPut() *cobra.Command {
	var opt putOptions
	cmd := newCommand("put", "[BODY]", "put a job, or one for each line of input", func(ctx context.Context, s *session, args []string) error {
		if opt.lines && opt.ndjson || len(args) > 0 && (opt.lines || opt.ndjson) {
			return usageError("BODY, --lines and --ndjson exclude each other")
		}
		c, err := s.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		jobs, err := opt.source(s.in, args)
		if err != nil {
			return err
		}
		return s.putAll(ctx, c, jobs)
	})
	cmd.Long = putLong
	cmd.Example = `  beanpole put --tube mail 'to: a@example.com'
  beanpole put --tube mail --delay 10m <message
  beanpole put --tube urls --lines <urls.txt`
	f := cmd.Flags()
	f.StringVarP(&opt.tube, "tube", "t", "default", "the `TUBE` to put into")
	f.Uint32VarP(&opt.pri, "pri", "p", 1024, "priority `N`; smaller is more urgent")
	f.DurationVarP(&opt.delay, "delay", "d", 0, "ready after this `TIME`, such as 10m")
	f.DurationVar(&opt.ttr, "ttr", client.DefaultTTR, "time to run: a worker may hold it for this `TIME`")
	f.BoolVar(&opt.lines, "lines", false, "a job for each line of standard input")
	f.BoolVar(&opt.ndjson, "ndjson", false, "a job for each line of JSON on standard input")
	return cmd
}

// A jobSource returns one job after the other, and then io.EOF.
type jobSource func() (client.NewJob, error)

// source returns the jobs to put.
func (opt *putOptions) source(in io.Reader, args []string) (jobSource, error) {
	job := client.NewJob{Tube: opt.tube, Pri: opt.pri, Delay: opt.delay, TTR: opt.ttr}
	if opt.lines || opt.ndjson {
		return opt.fromLines(in, job), nil
	}
	if len(args) > 0 {
		job.Body = []byte(args[0])
	} else {
		body, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		job.Body = body
	}
	given := false
	return func() (client.NewJob, error) {
		if given {
			return job, io.EOF
		}
		given = true
		return job, nil
	}, nil
}

// fromLines returns a job for each line, which is its body or describes it.
func (opt *putOptions) fromLines(in io.Reader, job client.NewJob) jobSource {
	lines := newLineReader(in)
	return func() (client.NewJob, error) {
		line, err := lines.next()
		if err != nil {
			return job, err
		}
		next := job
		if opt.lines {
			next.Body = line
			return next, nil
		}
		j, err := readJob(line)
		if err != nil {
			return job, fmt.Errorf("line %d: %w", lines.number, err)
		}
		next.Body, next.Pri, next.Delay = j.body(), j.Pri, time.Duration(j.Delay)*time.Second
		if j.Tube != "" {
			next.Tube = j.Tube
		}
		if j.TTR > 0 {
			next.TTR = time.Duration(j.TTR) * time.Second
		}
		return next, nil
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

// putBatch is how many jobs are put in one round trip.
const putBatch = 500

// putAll puts the jobs and prints their ids. When one cannot be put, the ids of those
// before it have been printed.
func (s *session) putAll(ctx context.Context, c *client.Conn, next jobSource) error {
	for {
		var batch []client.NewJob
		var end error
		for len(batch) < putBatch && end == nil {
			var j client.NewJob
			if j, end = next(); end == nil {
				batch = append(batch, j)
			}
		}
		ids, err := c.PutMany(ctx, batch)
		for _, id := range ids {
			if id == 0 {
				continue
			}
			if err := s.printID(id); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		if errors.Is(end, io.EOF) {
			return nil
		}
		if end != nil {
			return end
		}
	}
}

func (s *session) printID(id uint64) error {
	if s.json {
		return s.printJSON(map[string]uint64{"id": id})
	}
	_, err := fmt.Fprintln(s.out, id)
	return err
}
