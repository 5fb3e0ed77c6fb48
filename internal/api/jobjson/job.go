// Package jobjson is how a job is written in JSON, wherever beanpole does that: in the
// output of commands, in the files of an export, in the dump of a journal, in the JSON
// API. The page doc/cli.md describes it for users.
package jobjson

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// What a job has that is put without saying so.
const (
	DefaultTube     = "default"
	DefaultPriority = 1024
	DefaultTTR      = 60 // s
)

// ShownBody is how long a body is at most that is shown with its job, in bytes.
const ShownBody = 1 << 20

// A Job is what there is to tell of a job.
type Job = admin.Job

// DelayAgain returns for how many seconds the job is to be delayed when it is put again.
// A TimeLeft below 0 is not known.
func DelayAgain(j *Job) uint32 {
	switch {
	case j.State != "" && j.State != "delayed":
		return 0
	case j.State == "" || j.TimeLeft < 0:
		return j.Delay
	}
	return uint32(min(max(j.TimeLeft, 1), 1<<32-1)) // the last second has begun
}

// Read reads a job that is to be put, from a JSON object. What the object does not say is
// as in defaults. It needs a body; what a server gives itself is read, and means nothing.
func Read(object []byte, defaults Job) (Job, error) {
	j := defaults
	j.Body, j.BodyBase64, j.TimeLeft = nil, nil, -1
	if err := unmarshal(object, &j); err != nil {
		return j, err
	}
	switch {
	case j.Body != nil && j.BodyBase64 != nil:
		return j, errors.New("it has both body and body_base64")
	case j.Body == nil && j.BodyBase64 == nil:
		return j, errors.New("it has neither body nor body_base64")
	case j.State != "" && !slices.Contains(op.States, j.State):
		return j, fmt.Errorf("state: want one of %q", op.States)
	}
	j.TTR = max(j.TTR, 1) // as servers do
	j.Size = int64(len(j.Bytes()))
	return j, nil
}

// BodyOf returns the body of a job that is to be put.
func BodyOf(in *admin.PutJob) ([]byte, error) {
	switch {
	case (in.Body == nil) == (in.BodyBase64 == nil):
		return nil, admin.Problemf(http.StatusBadRequest, "want one of body and body_base64")
	case in.Body != nil:
		return []byte(*in.Body), nil
	}
	return *in.BodyBase64, nil
}
