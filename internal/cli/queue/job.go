package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/api/jobjson"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

// newJob returns a job with what is known of it; st may be nil.
func newJob(id uint64, body []byte, st *client.JobStats) jobjson.Job {
	j := jobjson.Job{ID: id, Size: int64(len(body))}
	if st != nil {
		j.Tube, j.State, j.Priority = st.Tube, string(st.State), st.Priority
		j.Delay, j.TTR, j.Age, j.TimeLeft = uint32(seconds(st.Delay)), uint32(seconds(st.TTR)), seconds(st.Age), seconds(st.TimeLeft)
		j.Reserves, j.Timeouts, j.Releases, j.Buries, j.Kicks = st.Reserves, st.Timeouts, st.Releases, st.Buries, st.Kicks
	}
	j.SetBody(body)
	return j
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

func ofSeconds[N int64 | uint32](n N) time.Duration { return time.Duration(n) * time.Second }

// asideDelay is for jobs that are to be buried: nobody gets them before they are.
const asideDelay = 365 * 24 * time.Hour

// putAgain returns what to put so that a job is there as it is described. One that is to
// be buried is put aside for that.
func putAgain(j *jobjson.Job) client.NewJob {
	n := client.NewJob{Tube: j.Tube, Body: j.Bytes(), Priority: new(j.Priority),
		TTR: ofSeconds(j.TTR), Delay: ofSeconds(jobjson.DelayAgain(j))}
	if isBuried(j) {
		n.Delay = asideDelay
	}
	return n
}

func isBuried(j *jobjson.Job) bool { return j.State == string(client.StateBuried) }

// printJob prints a job with its body: as JSON, or for people with what is known of
// it above the body.
func (s *session) printJob(j jobjson.Job) error {
	if s.JSON {
		return s.PrintJSON(j)
	}
	if s.printed {
		fmt.Fprintln(s.Out)
	}
	s.printed = true
	_, err := fmt.Fprintf(s.Out, "%s\n%s\n", describe(&j), printable(j.Bytes()))
	return err
}

// known returns a job that was peeked at with what the server knows of it, which it may have
// forgotten by now.
func known(ctx context.Context, c *client.Conn, j client.PeekedJob) (jobjson.Job, error) {
	st, err := c.StatsJob(ctx, j.ID)
	return newJob(j.ID, j.Body, st), ignoreNotFound(err)
}

// describe says in a line what is known of a job, and what has become of it so far, as far as
// anything has.
func describe(j *jobjson.Job) string {
	if j.Tube == "" {
		return fmt.Sprintf("job %d", j.ID)
	}
	text := fmt.Sprintf("job %d in tube %s: %s, priority %d, age %s, time to run %s", j.ID, j.Tube, j.State, j.Priority, ofSeconds(j.Age), ofSeconds(j.TTR))
	switch left := ofSeconds(j.TimeLeft); client.State(j.State) {
	case client.StateDelayed:
		text += fmt.Sprintf(", ready in %s", left)
	case client.StateReserved:
		text += fmt.Sprintf(", %s left", left)
	}
	for _, c := range []struct {
		what  string
		times uint64
	}{{"reserved", j.Reserves}, {"timed out", j.Timeouts}, {"released", j.Releases}, {"buried", j.Buries}, {"kicked", j.Kicks}} {
		switch c.times {
		case 0:
		case 1:
			text += fmt.Sprintf(", %s once", c.what)
		default:
			text += fmt.Sprintf(", %s %d times", c.what, c.times)
		}
	}
	return text
}

// printable returns a body as it may be shown on a terminal: text as it is, without
// control characters that would do something, and other bytes in quotes.
func printable(body []byte) string {
	if !utf8.Valid(body) {
		return strconv.Quote(string(body))
	}
	for _, r := range string(body) {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return strconv.Quote(string(body))
		}
	}
	return string(body)
}

// parseIDs reads the ids of jobs.
func parseIDs(args []string) ([]uint64, error) {
	ids := make([]uint64, len(args))
	for i, arg := range args {
		id, err := strconv.ParseUint(arg, 10, 64)
		if err != nil || id == 0 {
			return nil, cliutil.UsageError("%q is not the id of a job, which is a number from 1 on", arg)
		}
		ids[i] = id
	}
	return ids, nil
}

// eachID connects, and runs f for each of the ids, as eachOf does.
func (s *session) eachID(ctx context.Context, args []string, done string, f func(uint64) error) error {
	ids, err := parseIDs(args)
	if err == nil {
		err = s.Connect(ctx)
	}
	if err != nil {
		return err
	}
	return s.eachOf(ctx, ids, done, f)
}

// eachOf runs f for each of the ids and goes on when a job is not there; that is said at
// the end. done is what has become of the others; empty: nothing.
func (s *session) eachOf(ctx context.Context, ids []uint64, done string, f func(uint64) error) error {
	n := 0
	var missing []error
	for _, id := range ids {
		switch err := f(id); {
		case err == nil:
			n++
		case isNotFound(err):
			missing = append(missing, s.Server.Explain(ctx, err))
		default:
			return err
		}
	}
	if done != "" {
		if err := s.printCount(done, n); err != nil {
			return err
		}
	}
	if len(missing) < 2 {
		return errors.Join(missing...)
	}
	for _, err := range missing {
		s.Note("%v", err)
	}
	if done == "" {
		return cliutil.NotFoundError("%d of the %d jobs are not there", len(missing), len(ids))
	}
	return cliutil.NotFoundError("%d of the %d jobs were left as they are", len(missing), len(ids))
}
