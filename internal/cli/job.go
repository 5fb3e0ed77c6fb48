package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
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
		return j, notJSON(err)
	}
	switch {
	case j.Body != nil && j.Binary != nil:
		return j, errors.New("it has both body and body_base64")
	case j.Body == nil && j.Binary == nil:
		return j, errors.New("it has neither body nor body_base64")
	case j.Delay < 0 || j.TTR < 0 || j.Delay > mostSeconds || j.TTR > mostSeconds:
		return j, fmt.Errorf("delay and ttr are seconds, 0 to %d", int64(mostSeconds))
	}
	return j, nil
}

// notJSON says why a line is no job, without our names of types.
func notJSON(err error) error {
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case ok && e.Field == "":
		return fmt.Errorf("not a job in JSON: it is %s, and not an object", article(e.Value))
	case ok:
		return fmt.Errorf("not a job in JSON: %s cannot be %s", e.Field, article(e.Value))
	}
	return fmt.Errorf("not a job in JSON: %w", err)
}

// article puts one before a word.
func article(word string) string {
	if strings.ContainsRune("aeiou", rune(word[0])) {
		return "an " + word
	}
	return "a " + word
}

// printJob prints a job with its body: as JSON, or for people with what is known of
// it above the body.
func (s *session) printJob(j job) error {
	if s.json {
		return s.printJSON(j)
	}
	if s.printed {
		fmt.Fprintln(s.out)
	}
	s.printed = true
	fmt.Fprintf(s.out, "job %d", j.ID)
	if j.Tube != "" {
		fmt.Fprintf(s.out, " in tube %s: %s, priority %d, age %s, time to run %s", j.Tube, j.State, j.Pri,
			time.Duration(j.Age)*time.Second, time.Duration(j.TTR)*time.Second)
	}
	fmt.Fprintln(s.out, j.history())
	_, err := fmt.Fprintf(s.out, "%s\n", printable(j.body()))
	return err
}

// history tells of a job what has become of it so far, as far as anything has.
func (j *job) history() string {
	var b strings.Builder
	switch left := time.Duration(j.TimeLeft) * time.Second; client.State(j.State) {
	case client.StateDelayed:
		fmt.Fprintf(&b, ", ready in %s", left)
	case client.StateReserved:
		fmt.Fprintf(&b, ", %s left", left)
	}
	for _, c := range []struct {
		what  string
		times uint64
	}{{"reserved", j.Reserves}, {"timed out", j.Timeouts}, {"released", j.Releases}, {"buried", j.Buries}, {"kicked", j.Kicks}} {
		switch c.times {
		case 0:
		case 1:
			fmt.Fprintf(&b, ", %s once", c.what)
		default:
			fmt.Fprintf(&b, ", %s %d times", c.what, c.times)
		}
	}
	return b.String()
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
func (s *session) eachID(ctx context.Context, args []string, done string, f func(*client.Conn, uint64) error) error {
	ids, err := parseIDs(args)
	if err != nil {
		return err
	}
	c, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	n := 0
	var missing []error
	for _, id := range ids {
		switch err := f(c, id); {
		case err == nil:
			n++
		case isNothing(err):
			missing = append(missing, s.exit(ctx, err))
		default:
			return err
		}
	}
	if done != "" && s.json {
		if err := s.printJSON(map[string]int{done: n}); err != nil {
			return err
		}
	}
	if len(missing) < 2 {
		return errors.Join(missing...)
	}
	for _, err := range missing {
		s.note("%v", err)
	}
	if done == "" {
		return nothing("%d of the %d jobs are not there", len(missing), len(ids))
	}
	return nothing("%d of the %d jobs were left as they are", len(missing), len(ids))
}
