package admin

import (
	"io"
	"unicode/utf8"
)

// ListJobs is the input of Client.ListJobs.
type ListJobs struct {
	OfTube
	State  string `query:"state" as:"State" required:"true"`
	Bodies bool   `query:"bodies" default:"false"` // Include the bodies, as for a single job.
	Cursor string `query:"cursor"`                 // The `next` of the previous page; omit it for the first page.
	Limit  int    `query:"limit" min:"1" max:"10000" default:"100"`
}

// A Search selects jobs.
type Search struct {
	// A query: `user.id:17 state:buried age>10m tries>=3 "text" /regexp/ tube:mail-*`. All
	// conditions must hold; `not` negates a condition, `or` joins two.
	// The search also covers the decoded content of bodies and values with gzip, zlib,
	// base64, PHP's serialize, MessagePack or JSON.
	Q     *string `query:"q" maxlen:"2048"`
	State string  `query:"state" as:"State" want:"one of [ready reserved delayed buried], or none for all"` // State of the jobs; the default is all states.
}

// SearchAll is the input of Client.SearchAll.
type SearchAll struct {
	Search
	Cursor string `query:"cursor"` // The `next` of the previous page; omit it for the first page.
	Limit  int    `query:"limit" min:"1" max:"10000" default:"100"`
}

// SearchTube is the input of Client.SearchTube.
type SearchTube struct {
	OfTube
	SearchAll
}

// ExportAll is the input of Client.ExportAll.
type ExportAll struct{ Search }

// ExportTube is the input of Client.ExportTube.
type ExportTube struct {
	OfTube
	Search
}

// ImportAll is the input of Client.ImportAll.
type ImportAll struct {
	Lines io.Reader `body:"application/x-ndjson"` // One job in JSON per line.
}

// ImportTube is the input of Client.ImportTube.
type ImportTube struct {
	OfTube
	ImportAll
}

// PutJob is the input of Client.PutJob. It has either Body or BodyBase64.
type PutJob struct {
	OfTube
	_          struct{} `oneof:"body,body_base64"` // Has one of body and body_base64.
	Body       *Text    `json:"body"`              // Unicode text; unpaired surrogates are refused.
	BodyBase64 *[]byte  `json:"body_base64"`
	Priority   *uint32  `json:"priority" default:"1024"`
	Delay      uint32   `json:"delay" default:"0"`
	TTR        *uint32  `json:"ttr" default:"60"` // Time to run; 0 becomes 1.
}

// OfJob identifies a job.
type OfJob struct {
	Job uint64 `path:"job" as:"ID"`
}

// ChangeJob is the input of Client.ChangeJob. Nil fields are not changed.
type ChangeJob struct {
	OfJob
	_          struct{} `body:"required" minmembers:"1"`
	Priority   *uint32  `json:"priority" as:"Priority"`
	Delay      *uint32  `json:"delay"`
	TTR        *uint32  `json:"ttr"`         // Time to run; 0 becomes 1.
	Body       *Text    `json:"body"`        // New body as Unicode text; unpaired surrogates are refused.
	BodyBase64 *[]byte  `json:"body_base64"` // New body in base64; must not be combined with `body`.
}

// CopyJob is the input of Client.CopyJob. A nil field keeps the original's value.
type CopyJob struct {
	OfJob
	To       string  `json:"to" as:"TubeName" required:"true"`
	Priority *uint32 `json:"priority" as:"Priority"`
	Delay    uint32  `json:"delay" default:"0"`
	TTR      *uint32 `json:"ttr"` // Time to run; 0 becomes 1.
}

// MoveJob is the input of Client.MoveJob.
type MoveJob struct {
	OfJob
	To string `json:"to" as:"TubeName" required:"true"`
}

// BuryJob is the input of Client.BuryJob.
type BuryJob struct {
	OfJob
	Priority *uint32 `json:"priority" as:"Priority"`
}

// ReleaseJob is the input of Client.ReleaseJob.
type ReleaseJob struct {
	OfJob
	Priority *uint32 `json:"priority" as:"Priority"`
	Delay    uint32  `json:"delay" default:"0"`
}

// A Job is a job. Its times are in whole seconds.
type Job struct {
	ID         uint64 `json:"id" as:"ID"`
	Tube       string `json:"tube" as:"TubeName"`
	State      string `json:"state" as:"State"`
	Priority   uint32 `json:"priority" as:"Priority"`
	Size       int64  `json:"size"`                          // Size of the body in bytes.
	Age        int64  `json:"age"`                           // Time since the put.
	Delay      uint32 `json:"delay"`                         // Delay of the last put, release or change.
	TTR        uint32 `json:"ttr" min:"1"`                   // Time to run.
	TimeLeft   int64  `json:"time_left"`                     // Time until a delayed or reserved job becomes ready; otherwise 0.
	ReservedBy uint64 `json:"reserved_by,omitempty" min:"1"` // Id of the connection that holds the job.
	Held       int64  `json:"held,omitempty"`                // Time since the reserve; absent unless it is reserved.
	Touches    uint64 `json:"touches,omitempty"`             // Number of touches since the reserve.
	Reserves   uint64 `json:"reserves"`
	Timeouts   uint64 `json:"timeouts"`
	Releases   uint64 `json:"releases"`
	Buries     uint64 `json:"buries"`
	Kicks      uint64 `json:"kicks"`
	// The tube from which a policy moved the job; redrive moves it back. Absent if the
	// client has no right on that tube.
	Origin string `json:"origin,omitempty" as:"TubeName"`
	// End of the last attempt. Absent if no attempt has ended without a delete and the job
	// was never buried.
	Failure *Failure `json:"failure,omitempty"`

	Body       *Text   `json:"body,omitempty"`        // The body, if it is valid UTF-8.
	BodyBase64 *[]byte `json:"body_base64,omitempty"` // The body, if it is not valid UTF-8.
}

// A Failure describes how the last attempt of a job ended, and since when the job is
// buried.
type Failure struct {
	// The end: a timeout, a closed connection, a release or bury by the worker, or a job
	// taken from its worker by an operator. Absent if the attempt has not ended, or ended
	// because the server stopped.
	End     string  `json:"end,omitempty" enum:"timeout,closed,released,buried,taken"`
	Policy  string  `json:"policy,omitempty" enum:"max-attempts,max-timeouts,max-releases,ttl"` // Setting that exhausted or expired the job.
	At      int64   `json:"at,omitempty"`                                                       // Time of the end, in seconds since 1970.
	Took    float64 `json:"took,omitempty"`                                                     // Duration of the attempt, in seconds.
	Attempt uint64  `json:"attempt,omitempty"`                                                  // Number of the attempt. Absent if the job was never reserved.
	Buried  int64   `json:"buried,omitempty"`                                                   // Time since which the job is buried, in seconds since 1970.
	// The worker. Both are absent if the client has no right to see connections. A client of
	// a Unix socket has no address.
	Identity string `json:"identity,omitempty"`
	Address  string `json:"address,omitempty"`
	// Class of the error, from the reason.
	Class string `json:"class,omitempty"`
	// Text from the worker, or else the error in the body. Class and reason are absent if
	// the client cannot see the body.
	Reason string `json:"reason,omitempty" maxlen:"200"`
}

// Ended returns the end of the attempt in words, for example "timed out".
func (f *Failure) Ended() string {
	return map[string]string{
		"": "did not end", "timeout": "timed out", "closed": "lost its connection", "released": "was released", "buried": "was buried",
		"taken": "was taken from its worker",
	}[f.End]
}

// SetBody sets Body if body is valid UTF-8, and BodyBase64 otherwise.
func (j *Job) SetBody(body []byte) {
	j.Body, j.BodyBase64 = nil, nil
	if utf8.Valid(body) {
		text := Text(body)
		j.Body = &text
	} else {
		j.BodyBase64 = &body
	}
}

// Bytes returns the body. It is nil if the result does not include it.
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

// ListReserved is the input of Client.ListReserved.
type ListReserved struct {
	// Jobs of this tube. Commas separate several tubes; `*` matches any characters, `?`
	// one.
	Tube   string `query:"tube"`
	Cursor string `query:"cursor"` // The `next` of the previous page; omit it for the first page.
	Limit  int    `query:"limit" min:"1" max:"1000" default:"100"`
}

// Reserved is a page of reserved jobs.
type Reserved struct {
	Jobs  []ReservedJob `json:"jobs"`
	Next  string        `json:"next,omitempty" minlen:"1"`
	Total *uint64       `json:"total,omitempty"` // Number of reserved jobs; absent with `tube`, or if the client has no right to see it.
}

// A ReservedJob is a job that a connection holds. Its class and arguments are absent
// without the peek right on its tube, or if its body exceeds 64 KiB. Its address and
// identity are absent without the stats right on all tubes.
type ReservedJob struct {
	Job
	Class     string `json:"class,omitempty" minlen:"1"`     // Class or task that the body names.
	Arguments string `json:"arguments,omitempty" minlen:"1"` // Arguments in the body, or its text, in one line.
	Address   string `json:"address,omitempty" minlen:"1"`   // Address of the connection.
	Identity  string `json:"identity,omitempty" minlen:"1"`  // Identity of the connection.
}

// ListFailures is the input of Client.ListFailures.
type ListFailures struct {
	// Failures in this tube. Commas separate several tubes; `*` matches any characters, `?`
	// one.
	Tube  string `query:"tube"`
	Limit int    `query:"limit" min:"1" max:"1000" default:"100"` // Maximum number of groups.
}

// Failures are the groups of failed jobs in a sample, the largest first.
type Failures struct {
	Groups []FailureGroup `json:"groups"`
	Found  int            `json:"found"`  // Number of groups in the sample.
	Looked uint64         `json:"looked"` // Number of jobs in the sample.
	// Number of buried, delayed and ready jobs; absent if the client has no right to see it.
	Total *uint64 `json:"total,omitempty"`
}

// A FailureGroup describes the jobs of a tube in a state that failed for the same reason.
type FailureGroup struct {
	Tube   string `json:"tube" as:"TubeName"`
	State  string `json:"state" as:"State"`
	Origin string `json:"origin,omitempty" as:"TubeName"` // Tube from which a policy moved the first of the jobs.
	Class  string `json:"class,omitempty" minlen:"1"`     // Class of the jobs; absent if their bodies name none.
	// Reason that the workers gave, with `*` for each number and id. Without one, the end of
	// the last attempt: `timeout`, `closed`, `released` or `buried`; or the setting of the
	// policy that buried the job.
	Reason string `json:"reason" minlen:"1"`
	Jobs   uint64 `json:"jobs"`            // Number of jobs in the sample.
	First  int64  `json:"first,omitempty"` // Time of the first failure, in seconds since 1970; absent if unknown.
	Last   int64  `json:"last,omitempty"`  // Time of the last failure, in seconds since 1970; absent if unknown.
	Q      string `json:"q"`               // Search for the jobs of the group.
}

// ListClasses is the input of Client.ListClasses.
type ListClasses struct {
	OfTube
	State string `query:"state" as:"State" default:"ready"`
	Limit int    `query:"limit" min:"1" max:"10000" default:"1000"` // Maximum size of the sample.
}

// Classes are the classes of a sample of jobs, the most frequent first.
type Classes struct {
	Classes []Class `json:"classes"`
	Sampled uint64  `json:"sampled"` // Number of jobs in the sample.
	Total   uint64  `json:"total"`   // Number of jobs in the state.
}

// A Class is a class of jobs in a sample.
type Class struct {
	Class  string `json:"class"` // Class or task; empty for bodies that name none.
	Jobs   uint64 `json:"jobs"`
	Oldest int64  `json:"oldest"` // Age of the oldest job.
	Newest int64  `json:"newest"` // Age of the newest job.
}

// Found is a page of search results.
type Found struct {
	Jobs   []Job  `json:"jobs"`
	Next   string `json:"next,omitempty" minlen:"1"` // Present while more jobs remain to be searched.
	Looked uint64 `json:"looked"`                    // Number of jobs searched since the first page.
	// Current number of jobs to search; absent if the client has no right to see it.
	Total *uint64 `json:"total,omitempty"`
}

// Imported is the number of jobs that were put.
type Imported struct {
	Imported uint64 `json:"imported"`
}

// Inserted is the id of a job that was put.
type Inserted struct {
	ID uint64 `json:"id" as:"ID"`
}
