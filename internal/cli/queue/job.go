package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/jobjson"
)

// newJob returns a job with its statistics. st is nil if the statistics are unknown.
func newJob(id uint64, body []byte, st *client.JobStats) jobjson.Job {
	j := jobjson.Job{ID: id, Size: int64(len(body))}
	if st != nil {
		j.Tube, j.State, j.Priority = st.Tube, string(st.State), st.Priority
		j.Delay, j.TTR, j.Age, j.TimeLeft = uint32(seconds(st.Delay)), uint32(seconds(st.TTR)), seconds(st.Age), seconds(st.TimeLeft)
		j.Reserves, j.Timeouts, j.Releases, j.Buries, j.Kicks = st.Reserves, st.Timeouts, st.Releases, st.Buries, st.Kicks
	}
	jobjson.SetBody(&j, body)
	return j
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// printJob prints a job: as JSON, or as a line with its attributes above its body.
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

// withStats returns a peeked job with its statistics, if it still exists. If the job is
// available through an admin API, the result contains the end of its last attempt.
func withStats(ctx context.Context, c *client.Conn, a *admin.Client, id uint64, body []byte) (jobjson.Job, error) {
	st, err := c.StatsJob(ctx, id)
	job := newJob(id, body, st)
	if a != nil && err == nil {
		if full, err := a.GetJob(ctx, &admin.OfJob{Job: id}); err == nil { // otherwise, the API is unavailable, or refuses the request
			job.Failure = full.Failure
		}
	}
	return job, ignoreNotFound(err)
}

// describe returns the attributes of a job on one line, and the end of its last attempt.
func describe(j *jobjson.Job) string {
	if j.Tube == "" {
		return fmt.Sprintf("job %d", j.ID)
	}
	text := fmt.Sprintf("job %d in tube %s: %s, priority %d, age %s, TTR %s, time left %s, reserves %d, timeouts %d, releases %d, buries %d, kicks %d",
		j.ID, j.Tube, j.State, j.Priority, cliutil.OfSeconds(j.Age), cliutil.OfSeconds(j.TTR), cliutil.OfSeconds(j.TimeLeft), j.Reserves, j.Timeouts, j.Releases, j.Buries, j.Kicks)
	if j.Failure != nil {
		text += describeFailure(j.Failure)
	}
	return text
}

// describeFailure returns two lines: the end of the last attempt, and its reason.
func describeFailure(f *admin.Failure) (text string) {
	at := func(seconds int64) string { return time.Unix(seconds, 0).Format(time.RFC3339) }
	if f.Attempt > 0 {
		text = fmt.Sprintf("\nattempt %d %s at %s after %s", f.Attempt, f.Ended(), at(f.At), time.Duration(f.Took*float64(time.Second)))
		if worker := strings.TrimSpace(f.Identity + " " + f.Address); worker != "" {
			text += ", worker " + cliutil.Line(worker)
		}
	}
	if f.Buried > 0 {
		text += "\nburied since " + at(f.Buried)
	}
	if f.Policy != "" {
		text += ", by the policy " + f.Policy
	}
	if f.Reason != "" {
		text += "\nreason: " + cliutil.Line(f.Reason)
	}
	return text
}

// printable returns a body as text for a terminal. It quotes a body that is not valid
// UTF-8 or contains characters that control a terminal or the direction of text.
func printable(body []byte) string {
	if !utf8.Valid(body) {
		return strconv.Quote(string(body))
	}
	for _, r := range string(body) {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			return strconv.Quote(string(body))
		}
	}
	return string(body)
}

// parseIDs parses the ids of jobs or connections.
func parseIDs(args []string, of string) ([]uint64, error) {
	ids := make([]uint64, len(args))
	for i, arg := range args {
		id, err := strconv.ParseUint(arg, 10, 64)
		if err != nil || id == 0 {
			return nil, exit.UsageError("%q is not a %s id; want a number from 1", arg, of)
		}
		ids[i] = id
	}
	return ids, nil
}

// eachID connects and calls f for each id; see eachOf.
func (s *session) eachID(ctx context.Context, args []string, done string, f func(uint64) error) error {
	ids, err := parseIDs(args, "job")
	if err == nil {
		err = s.Connect(ctx)
	}
	if err != nil {
		return err
	}
	return s.eachOf(ctx, ids, done, f)
}

// eachOf calls f for each id. It continues after jobs that are not found, and returns
// their errors. done is the result for the others in one word. If it is empty, no count
// is printed.
func (s *session) eachOf(ctx context.Context, ids []uint64, done string, f func(uint64) error) error {
	n := uint64(0)
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
	return errors.Join(missing...)
}
