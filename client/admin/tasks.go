package admin

// OfTask is about one task.
type OfTask struct {
	Task uint64 `path:"task" as:"ID"`
}

// GetTask asks how far a task is.
type GetTask struct {
	OfTask
	Wait int `query:"wait" min:"0" max:"60" default:"0"` // Answer when the task has ended, or after so many seconds.
}

// StartTask is something to do to many jobs of a tube: those that IDs name, or those in a State whose bodies match.
type StartTask struct {
	OfTube
	Wait int      `query:"wait" min:"0" max:"60" default:"0"` // Answer when the task has ended, or after so many seconds.
	_    struct{} `oneof:"state,ids"`                         // Has one of state and ids.
	// kick accepts buried and delayed jobs; bury ready, delayed and reserved jobs; release reserved jobs; redrive buried and ready jobs. A
	// redriven job becomes ready in its origin, the tube that a policy has moved it out of, with as many attempts again. The other verbs
	// accept ready, delayed and buried jobs.
	Do       string    `json:"do" enum:"kick,bury,release,redrive,delete,move,change" required:"true"`
	State    *string   `json:"state" as:"State"`
	IDs      *[]uint64 `json:"ids" maxitems:"10000"`
	Q        *string   `json:"q" maxlen:"2048"`        // With state: only those that match, as in a search.
	Count    *uint32   `json:"count"`                  // How many at most; all if it is left out.
	To       *string   `json:"to" as:"TubeName"`       // For move: the other tube. For redrive: the tube for all of them, also those that have no origin.
	Priority *uint32   `json:"priority" as:"Priority"` // For bury, release and change.
	Delay    *uint32   `json:"delay"`                  // For release and change.
	TTR      *uint32   `json:"ttr"`                    // For change.
}

// A Task is work on many jobs of a tube, which goes on after its request was answered.
type Task struct {
	ID       uint64            `json:"id" min:"1"`
	Do       string            `json:"do"`
	Tube     string            `json:"tube" as:"TubeName"`
	State    string            `json:"state,omitempty" as:"State"` // Not there if the jobs were named.
	Search   bool              `json:"search"`                     // Only those whose bodies match.
	To       string            `json:"to,omitempty" as:"TubeName"` // Left out if the client has no right on the tube.
	Identity string            `json:"identity"`                   // Who has started it; empty if that is not known.
	Started  string            `json:"started" format:"date-time"`
	Ended    string            `json:"ended,omitempty" format:"date-time"`
	Status   string            `json:"status" enum:"looking,working,done,cancelled,failed"`
	Looked   uint64            `json:"looked"`                       // Jobs that it has looked at to find those that it is about.
	Found    uint64            `json:"found"`                        // Jobs that it is about.
	Done     uint64            `json:"done"`                         // Jobs that it was done to.
	Skipped  map[string]uint64 `json:"skipped" min:"1"`              // How many jobs it was not done to, by what they were by then; a state, `gone`, `in another tube`, or, for redrive, `without an origin`, or `not permitted` there.
	Problem  string            `json:"problem,omitempty" minlen:"1"` // Why it has failed.
}

// Tasks are the tasks that run, and the last ones that have ended; the newest first.
type Tasks struct {
	Tasks []Task `json:"tasks"`
}
