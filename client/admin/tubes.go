package admin

// ListTubes asks for a page of tubes.
type ListTubes struct {
	// What to sort by, with `-` before it for the largest first. `attention` is how much they need it, `queue` is how long jobs were
	// ready on average, `work` how long they were reserved. `put_per_second` and `deleted_per_second` are those of the last minute, as
	// `recent` has them; tubes of which the server has no samples are below all others.
	Sort string `query:"sort" pattern:"^-?(name|ready|reserved|delayed|buried|urgent|body_bytes|oldest_ready|total_jobs|deletes|using|watching|waiting|pause_left|queue|work|timeouts|releases|buries|attention|put_per_second|deleted_per_second)$"`
	Q    string `query:"q"` // What the name has in it. With `*` (any characters) or `?` (one) it is a pattern of the whole name.
	// Conditions with commas between them, which all must hold: jobs in a state; `paused`; `waiting`, connections wait for a job;
	// `unwatched`, ready jobs and no connection watches the tube; `limited`, it has nine tenths of the jobs or bytes that it may have.
	Has    string `query:"has" pattern:"^(ready|reserved|delayed|buried|paused|waiting|unwatched|limited)(,(ready|reserved|delayed|buried|paused|waiting|unwatched|limited))*$"`
	Recent bool   `query:"recent" default:"false"` // Whether each tube comes with what has happened in it in the last ten minutes.
	Cursor string `query:"cursor"`                 // The `next` of the page before; nothing for the first page.
	Limit  int    `query:"limit" min:"1" max:"10000" default:"100"`
}

// OfTube is about one tube.
type OfTube struct {
	Tube string `path:"tube" as:"TubeName"` // The name of a tube; a slash in it is written %2F. The tubes `.`, `..` and `/` are `~2E`, `~2E~2E` and `~2F`.
}

// PauseTube lets nobody reserve from a tube for a while.
type PauseTube struct {
	OfTube
	Seconds uint32 `json:"seconds" min:"1" want:"how long to pause, 1 or more; resume ends a pause"`
}

// Tubes is a page of tubes. Those that match are counted if the page is asked for by anything
// but the name.
type Tubes struct {
	Tubes    []Tube     `json:"tubes"`
	Next     string     `json:"next,omitempty" minlen:"1"`
	Matching *uint64    `json:"matching,omitempty"` // How many tubes match on all pages.
	Jobs     *JobCounts `json:"jobs,omitempty"`     // Those of all tubes that match.
}

// A Tube is what there is to tell of a tube.
type Tube struct {
	Name        string    `json:"name" as:"TubeName"`
	Jobs        JobCounts `json:"jobs"`
	Urgent      uint64    `json:"urgent"`       // Ready jobs with a priority below 1024.
	BodyBytes   uint64    `json:"body_bytes"`   // Of the bodies of its jobs.
	OldestReady int64     `json:"oldest_ready"` // How long the job has been ready that is the next to be reserved, in seconds; 0 if there is none. After a restart, a job that was reserved or kicked before counts from the start.
	TotalJobs   uint64    `json:"total_jobs"`   // Put since the tube came to be.
	Deletes     uint64    `json:"deletes"`      // Delete commands since the tube came to be.
	Timeouts    uint64    `json:"timeouts"`     // How often since then a worker held a job of it until its time to run was over.
	Releases    uint64    `json:"releases"`     // How often since then a job of it was released.
	Buries      uint64    `json:"buries"`       // How often since then a job of it was buried.
	Pauses      uint64    `json:"pauses"`       // Pauses since the tube came to be.
	Using       uint64    `json:"using"`        // Connections that use it.
	Watching    uint64    `json:"watching"`     // Connections that watch it.
	Waiting     uint64    `json:"waiting"`      // Connections that wait for a job of it.
	Pause       int64     `json:"pause"`        // How long it was paused for; 0 if it is not paused.
	PauseLeft   int64     `json:"pause_left"`
	Queue       Durations `json:"queue"`            // How long jobs were ready before they were reserved, since the tube came to be.
	Work        Durations `json:"work"`             // How long jobs were reserved before their delete, release or bury, since the tube came to be.
	Recent      *Recent   `json:"recent,omitempty"` // Not there if it was not asked for, or if there are no samples of the tube.
	Limit       *Limit    `json:"limit,omitempty"`  // How much the tube takes; not there in lists, or if it has no limit of its own.
}

// An Explanation says why jobs of a tube wait, or what becomes of them.
type Explanation struct {
	Text     string `json:"text" minlen:"1"`                       // One sentence, without its full stop.
	Severity string `json:"severity,omitempty" enum:"bad,warning"` // Not there: nothing is wrong.
}

// A Limit is how much a tube takes.
type Limit struct {
	Jobs  int64  `json:"jobs"`  // 0: any number.
	Bytes int64  `json:"bytes"` // Of bodies; 0: any number.
	From  string `json:"from"`  // The table of the configuration that has set it.
}

// Durations are how often something took time, and how long all of that took.
type Durations struct {
	Count   uint64  `json:"count"`
	Seconds float64 `json:"seconds"` // All of them together.
}

// Recent is what has happened in a tube in the last minutes.
type Recent struct {
	Step             int64     `json:"step" min:"1"` // How many seconds are between two values.
	Ready            []uint64  `json:"ready"`
	Reserved         []uint64  `json:"reserved,omitempty"` // This and the other series are not there in lists.
	Delayed          []uint64  `json:"delayed,omitempty"`
	Buried           []uint64  `json:"buried,omitempty"`
	OldestReady      []uint64  `json:"oldest_ready,omitempty"`
	Put              []float64 `json:"put,omitempty"`       // Jobs a second.
	Deleted          []float64 `json:"deleted,omitempty"`   // Delete commands a second.
	PutPerSecond     float64   `json:"put_per_second"`      // In the last minute.
	DeletedPerSecond float64   `json:"deleted_per_second"`  // In the last minute.
	BuriedMore       int64     `json:"buried_more" min:"-"` // How many more buried jobs there are than at the first of the values.
}
