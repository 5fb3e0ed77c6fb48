package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/beanpole-mq/beanpole/client"
)

// A job as JSON has it, here and in the files of export. Times are whole seconds. A
// body that is not UTF-8 is in body_base64 in place of body.
type job struct {
	ID       uint64  `json:"id,omitempty"`
	Tube     string  `json:"tube,omitempty"`
	State    string  `json:"state,omitempty"`
	Pri      uint32  `json:"pri"`
	Delay    int64   `json:"delay"`
	TTR      int64   `json:"ttr,omitempty"`
	Age      int64   `json:"age,omitempty"`
	TimeLeft int64   `json:"time_left,omitempty"`
	Reserves uint64  `json:"reserves,omitempty"`
	Timeouts uint64  `json:"timeouts,omitempty"`
	Releases uint64  `json:"releases,omitempty"`
	Buries   uint64  `json:"buries,omitempty"`
	Kicks    uint64  `json:"kicks,omitempty"`
	Body     *string `json:"body,omitempty"`
	Binary   []byte  `json:"body_base64,omitempty"`
}

// newJob returns a job with what is known of it; st may be nil.
func newJob(id uint64, body []byte, st *client.JobStats) job {
	j := job{ID: id}
	if st != nil {
		j.Tube, j.State, j.Pri = st.Tube, string(st.State), st.Pri
		j.Delay, j.TTR, j.Age, j.TimeLeft = seconds(st.Delay), seconds(st.TTR), seconds(st.Age), seconds(st.TimeLeft)
		j.Reserves, j.Timeouts, j.Releases, j.Buries, j.Kicks = st.Reserves, st.Timeouts, st.Releases, st.Buries, st.Kicks
	}
	j.setBody(body)
	return j
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

func (j *job) setBody(body []byte) {
	if utf8.Valid(body) {
		text := string(body)
		j.Body, j.Binary = &text, nil
	} else {
		j.Body, j.Binary = nil, body
	}
}

// body returns the bytes of the body.
func (j *job) body() []byte {
	if j.Body != nil {
		return []byte(*j.Body)
	}
	return j.Binary
}

// readJob reads a job from a line of JSON.
func readJob(line []byte) (j job, err error) {
	if err := json.Unmarshal(line, &j); err != nil {
		return j, fmt.Errorf("not a job in JSON: %w", err)
	}
	switch {
	case j.Body != nil && j.Binary != nil:
		return j, errors.New("it has both body and body_base64")
	case j.Body == nil && j.Binary == nil:
		return j, errors.New("it has neither body nor body_base64")
	case j.Delay < 0 || j.TTR < 0:
		return j, errors.New("delay and ttr are not negative")
	}
	return j, nil
}

// printJob prints a job with its body: as JSON, or for people with what is known of
// it above the body.
func (s *session) printJob(j job) error {
	if s.json {
		return s.printJSON(j)
	}
	fmt.Fprintf(s.out, "job %d", j.ID)
	if j.Tube != "" {
		fmt.Fprintf(s.out, " in tube %s: %s, priority %d, age %s, time to run %s", j.Tube, j.State, j.Pri,
			time.Duration(j.Age)*time.Second, time.Duration(j.TTR)*time.Second)
	}
	fmt.Fprintln(s.out)
	_, err := fmt.Fprintf(s.out, "%s\n", printable(j.body()))
	return err
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
			return nil, usageError("%q is not the id of a job, which is a number from 1 on", arg)
		}
		ids[i] = id
	}
	return ids, nil
}

// eachID runs f for each of the ids and goes on when a job is not there; that is
// said at the end.
func (s *session) eachID(ctx context.Context, args []string, f func(*client.Conn, uint64) error) error {
	ids, err := parseIDs(args)
	if err != nil {
		return err
	}
	c, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	var missing error
	for _, id := range ids {
		if err := f(c, id); errors.Is(err, client.ErrNotFound) {
			missing = err
			if len(ids) > 1 {
				s.note("%v", err)
			}
		} else if err != nil {
			return err
		}
	}
	return missing
}
