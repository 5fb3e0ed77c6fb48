// Package jobjson implements the JSON format of jobs in the output of commands, in
// exports, in the dump of a journal, and in the JSON API. doc/cli.md describes it for
// users.
package jobjson

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/decode"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// Defaults of a put.
const (
	DefaultTube     = "default"
	DefaultPriority = 1024
	DefaultTTR      = 60 // seconds
)

// ShownBody is the maximum size in bytes of a body that is shown with its job.
const ShownBody = 1 << 20

// A Job is a job in JSON.
type Job = admin.Job

// FailureOf returns the end of a job's last attempt in JSON. It contains the time of the
// burial only if buried is true. FailureOf returns nil if ok is false or nothing remains.
func FailureOf(f engine.Failure, ok, buried bool) *admin.Failure {
	if !ok {
		return nil
	}
	shown := &admin.Failure{
		End: f.End.String(), Policy: f.Policy, Took: float64(f.Took) / 1000, Attempt: uint64(f.Attempt),
		Identity: f.Identity, Class: decode.ErrorClass(f.Note), Reason: f.Note,
	}
	if f.Attempt > 0 {
		shown.At = f.At / 1000
	}
	if buried {
		shown.Buried = f.Buried / 1000
	}
	if f.Address.IsValid() {
		shown.Address = f.Address.String()
	}
	if *shown == (admin.Failure{}) { // an operator buried and kicked a job without attempts
		return nil
	}
	return shown
}

// SetBody sets the body of a job. If the last attempt has no reason from its worker,
// SetBody uses the error in the body as the reason.
func SetBody(j *Job, body []byte) {
	j.SetBody(body)
	if j.Failure != nil && j.Failure.Reason != "" {
		return
	}
	if reason := decode.Reason(body); reason != "" {
		if j.Failure == nil {
			j.Failure = new(admin.Failure)
		}
		j.Failure.Class, j.Failure.Reason = decode.ErrorClass(reason), reason
	}
}

// DelayAgain returns the delay in seconds for a new put of the job. A negative TimeLeft
// means that the delay is unknown.
func DelayAgain(j *Job) uint32 {
	switch {
	case j.State == "ready" || j.State == "reserved":
		return 0
	case j.State != "delayed" || j.TimeLeft < 0:
		return j.Delay
	}
	return uint32(min(max(j.TimeLeft, 1), 1<<32-1)) // in its last second, the delay is not over
}

// Read parses a job to put. Missing members have their values from defaults. A body is
// required. Members that the server sets, such as id, are accepted and ignored.
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
	j.TTR = max(j.TTR, 1) // as in all servers
	j.Size = int64(len(j.Bytes()))
	return j, nil
}

// BodyOf returns the body of a job to put.
func BodyOf(in *admin.PutJob) ([]byte, error) {
	switch {
	case (in.Body == nil) == (in.BodyBase64 == nil):
		return nil, admin.Problemf(http.StatusBadRequest, "want one of body and body_base64")
	case in.Body != nil:
		return []byte(*in.Body), nil
	}
	return *in.BodyBase64, nil
}
