package admin

import (
	"io"
	"unicode/utf8"
)

// ListJobs asks for the jobs of a tube in one state.
type ListJobs struct {
	OfTube
	State  string `query:"state" as:"State" required:"true"`
	Bodies bool   `query:"bodies" default:"false"` // Whether each job comes with its body, as one job alone does.
	Cursor string `query:"cursor"`                 // The `next` of the page before; nothing for the first page.
	Limit  int    `query:"limit" min:"1" max:"10000" default:"100"`
}

// A Search says which jobs are meant. All that is given must hold.
type Search struct {
	// What somebody would type: `user.id:17 state:buried age>10m tries>=3 "text" /regexp/ tube:mail-*`. Bodies that are packed (gzip, zlib,
	// base64, PHP's serialize, MessagePack), or have such a thing or JSON in them, are also looked into opened.
	Q     *string `query:"q" maxlen:"2048"`
	State string  `query:"state" as:"State" want:"one of [ready reserved delayed buried], or none for all"` // Of the jobs; without it they may be in any.
}

// SearchAll looks for jobs in all tubes.
type SearchAll struct {
	Search
	Cursor string `query:"cursor"` // The `next` of the page before; nothing for the first page.
	Limit  int    `query:"limit" min:"1" max:"10000" default:"100"`
}

// SearchTube looks for jobs of a tube.
type SearchTube struct {
	OfTube
	SearchAll
}

// ExportAll asks for the jobs of all tubes.
type ExportAll struct{ Search }

// ExportTube asks for the jobs of a tube.
type ExportTube struct {
	OfTube
	Search
}

// ImportAll puts jobs into the tubes that they name.
type ImportAll struct {
	Lines io.Reader `body:"application/x-ndjson"` // A job in JSON on each line.
}

// ImportTube puts jobs into a tube.
type ImportTube struct {
	OfTube
	ImportAll
}

// PutJob is a job that is to be put. It has one of Body and BodyBase64.
type PutJob struct {
	OfTube
	_          struct{} `oneof:"body,body_base64"` // Has one of body and body_base64.
	Body       *Text    `json:"body"`              // Unicode; halves of surrogate pairs are refused.
	BodyBase64 *[]byte  `json:"body_base64"`
	Priority   *uint32  `json:"priority" default:"1024"`
	Delay      uint32   `json:"delay" default:"0"`
	TTR        *uint32  `json:"ttr" default:"60"` // Time to run; 0 becomes 1.
}

// OfJob is about one job.
type OfJob struct {
	Job uint64 `path:"job" as:"ID"`
}

// ChangeJob changes a job that nobody holds. What is nil stays as it is.
type ChangeJob struct {
	OfJob
	_          struct{} `body:"required" minmembers:"1"`
	Priority   *uint32  `json:"priority" as:"Priority"`
	Delay      *uint32  `json:"delay"`
	TTR        *uint32  `json:"ttr"`         // Time to run; 0 becomes 1.
	Body       *Text    `json:"body"`        // A new body: Unicode; halves of surrogate pairs are refused.
	BodyBase64 *[]byte  `json:"body_base64"` // The same in base64; there may be one of both.
}

// CopyJob puts a job with the body of another one. What is nil is as with that one.
type CopyJob struct {
	OfJob
	To       string  `json:"to" as:"TubeName" required:"true"`
	Priority *uint32 `json:"priority" as:"Priority"`
	Delay    uint32  `json:"delay" default:"0"`
	TTR      *uint32 `json:"ttr"` // Time to run; 0 becomes 1.
}

// MoveJob moves a job that nobody holds to another tube.
type MoveJob struct {
	OfJob
	To string `json:"to" as:"TubeName" required:"true"`
}

// BuryJob sets a job aside.
type BuryJob struct {
	OfJob
	Priority *uint32 `json:"priority" as:"Priority"`
}

// ReleaseJob takes a job from the worker that holds it.
type ReleaseJob struct {
	OfJob
	Priority *uint32 `json:"priority" as:"Priority"`
	Delay    uint32  `json:"delay" default:"0"`
}

// A Job is what there is to tell of a job. Its times are in whole seconds.
type Job struct {
	ID         uint64 `json:"id" as:"ID"`
	Tube       string `json:"tube" as:"TubeName"`
	State      string `json:"state" as:"State"`
	Priority   uint32 `json:"priority" as:"Priority"`
	Size       int64  `json:"size"`                          // Bytes of the body.
	Age        int64  `json:"age"`                           // Since the put.
	Delay      uint32 `json:"delay"`                         // As last given.
	TTR        uint32 `json:"ttr" min:"1"`                   // Time to run.
	TimeLeft   int64  `json:"time_left"`                     // Until a delayed or reserved job becomes ready; else 0.
	ReservedBy uint64 `json:"reserved_by,omitempty" min:"1"` // The id of the connection that holds it.
	Reserves   uint64 `json:"reserves"`
	Timeouts   uint64 `json:"timeouts"`
	Releases   uint64 `json:"releases"`
	Buries     uint64 `json:"buries"`
	Kicks      uint64 `json:"kicks"`
	Origin     string `json:"origin,omitempty" as:"TubeName"` // The tube from which a policy has moved the job; redrive moves it back. Left out if the client has no right on that tube.

	// One of them, where the body is shown.
	Body       *Text   `json:"body,omitempty"`        // The body, if it is valid UTF-8.
	BodyBase64 *[]byte `json:"body_base64,omitempty"` // The body, if it is not.
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

// Jobs is a page of jobs.
type Jobs struct {
	Jobs []Job  `json:"jobs"`
	Next string `json:"next,omitempty" minlen:"1"`
}

// Found is a page of a search: the jobs that match, of those that were looked at.
type Found struct {
	Jobs   []Job   `json:"jobs"`
	Next   string  `json:"next,omitempty" minlen:"1"` // There is more to look at.
	Looked uint64  `json:"looked"`                    // Jobs that were looked at since the first page.
	Total  *uint64 `json:"total,omitempty"`           // Jobs that there are to look at, now; not there if the client may not know that.
}

// Imported is how many jobs were put.
type Imported struct {
	Imported uint64 `json:"imported"`
}

// Inserted is a job that was put.
type Inserted struct {
	ID uint64 `json:"id" as:"ID"`
}
