// Package jobjson is how a job is written in JSON, wherever beanpole does that: in the
// output of commands, in the files of an export, in the dump of a journal, in the JSON
// API. The page doc/cli.md describes it for users.
package jobjson

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// What a job has that is put without saying so.
const (
	DefaultTube     = "default"
	DefaultPriority = 1024
	DefaultTTR      = 60 // s
)

// States are the states that a job may be in.
var States = []string{"ready", "reserved", "delayed", "buried"}

// A Job is what there is to tell of a job. Its times are in whole seconds.
type Job struct {
	ID         uint64 `json:"id"`
	Tube       string `json:"tube"`
	State      string `json:"state"`
	Priority   uint32 `json:"priority"`
	Size       int64  `json:"size"` // bytes of the body
	Age        int64  `json:"age"`
	Delay      uint32 `json:"delay"` // as last given
	TTR        uint32 `json:"ttr"`
	TimeLeft   int64  `json:"time_left"`             // until a delayed or reserved job becomes ready
	ReservedBy uint64 `json:"reserved_by,omitempty"` // id of a connection; only the API knows it
	Reserves   uint64 `json:"reserves"`
	Timeouts   uint64 `json:"timeouts"`
	Releases   uint64 `json:"releases"`
	Buries     uint64 `json:"buries"`
	Kicks      uint64 `json:"kicks"`

	// One of them, where the body is shown.
	Body       *Text   `json:"body,omitempty"`
	BodyBase64 *[]byte `json:"body_base64,omitempty"`
}

// SetBody shows a body: as text if it is valid UTF-8, else in base64.
func (j *Job) SetBody(body []byte) {
	j.Body, j.BodyBase64 = nil, nil
	if utf8.Valid(body) {
		text := Text(body)
		j.Body = &text
	} else {
		j.BodyBase64 = &body
	}
}

// Bytes returns the body, or nil if it is not there.
func (j *Job) Bytes() []byte {
	switch {
	case j.Body != nil:
		return []byte(*j.Body)
	case j.BodyBase64 != nil:
		return *j.BodyBase64
	}
	return nil
}

// DelayAgain returns for how many seconds the job is to be delayed when it is put again.
// A TimeLeft below 0 is not known.
func (j *Job) DelayAgain() uint32 {
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
	case j.State != "" && !slices.Contains(States, j.State):
		return j, fmt.Errorf("state: want one of %q", States)
	}
	j.TTR = max(j.TTR, 1) // as servers do
	j.Size = int64(len(j.Bytes()))
	return j, nil
}
