package admin

// OfTask identifies a task.
type OfTask struct {
	Task uint64 `path:"task" as:"ID"`
}

// GetTask is the input of Client.GetTask.
type GetTask struct {
	OfTask
	Wait int `query:"wait" min:"0" max:"60" default:"0"` // Seconds to wait for the end of the task before the reply.
}

// StartTask is the input of Client.StartTask: a change of many jobs of a tube, either
// those in IDs or those in a State.
type StartTask struct {
	OfTube
	Wait int      `query:"wait" min:"0" max:"60" default:"0"` // Seconds to wait for the end of the task before the reply.
	_    struct{} `oneof:"state,ids"`                         // Has one of state and ids.
	// Accepted states: kick, buried and delayed; bury, ready, delayed and reserved; release,
	// reserved; redrive, buried and ready; the others, ready, delayed and buried. A redriven
	// job becomes ready in its origin, the tube from which a policy moved it, and has all
	// its attempts again.
	Do    string    `json:"do" enum:"kick,bury,release,redrive,delete,move,change" required:"true"`
	State *string   `json:"state" as:"State"`
	IDs   *[]uint64 `json:"ids" maxitems:"10000"`
	Q     *string   `json:"q" maxlen:"2048"` // With state: a search that jobs must match.
	Count *uint32   `json:"count"`           // Maximum number of jobs; the default is all.
	// For move: the destination. For redrive: the destination of all jobs, including jobs
	// without an origin.
	To       *string `json:"to" as:"TubeName"`
	Priority *uint32 `json:"priority" as:"Priority"` // For bury, release and change.
	Delay    *uint32 `json:"delay"`                  // For release and change.
	TTR      *uint32 `json:"ttr"`                    // For change.
}

// A Task is a change of many jobs of a tube. It continues after the reply to its request.
type Task struct {
	ID       uint64 `json:"id" min:"1"`
	Do       string `json:"do"`
	Tube     string `json:"tube" as:"TubeName"`
	State    string `json:"state,omitempty" as:"State"` // Absent if the request has ids.
	Search   bool   `json:"search"`                     // The request has a search.
	To       string `json:"to,omitempty" as:"TubeName"` // Left out if the client has no right on the tube.
	Identity string `json:"identity"`                   // Identity that started the task; empty if unknown.
	Started  string `json:"started" format:"date-time"`
	Ended    string `json:"ended,omitempty" format:"date-time"`
	Status   string `json:"status" enum:"looking,working,done,cancelled,failed"`
	Looked   uint64 `json:"looked"` // Jobs searched so far.
	Found    uint64 `json:"found"`  // Jobs to change.
	Done     uint64 `json:"done"`   // Jobs changed.
	// Number of skipped jobs by reason: a state, `gone`, `in another tube`, or, for
	// redrive, `without an origin` or `not permitted`.
	Skipped map[string]uint64 `json:"skipped" min:"1"`
	Problem string            `json:"problem,omitempty" minlen:"1"` // Reason of the failure.
}

// Tasks are the running and recently finished tasks, the newest first.
type Tasks struct {
	Tasks []Task `json:"tasks"`
}
