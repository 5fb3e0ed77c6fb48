package admin

// ListTubes is the input of Client.ListTubes.
type ListTubes struct {
	// Column to sort by, with `-` before it for descending. `attention` is the severity
	// of the findings, `work` the average time that jobs were reserved. `put_per_second`
	// and `deleted_per_second` cover the last minute, as in `recent`; tubes without
	// samples come last.
	Sort string `query:"sort" pattern:"^-?(name|ready|reserved|delayed|buried|body_bytes|oldest_ready|total_jobs|watching|waiting|work|timeouts|releases|attention|put_per_second|deleted_per_second)$"`
	// Text in the name. With `*` (any characters) or `?` (one character), a pattern of
	// the whole name.
	Q string `query:"q"`
	// Conditions, separated by commas. All must hold: a state, for tubes with jobs in it;
	// `paused`; `waiting`, connections wait for a job; `unwatched`, ready jobs without a
	// connection that watches; `limited`, nine tenths of the limit are in use.
	Has    string `query:"has" pattern:"^(ready|reserved|delayed|buried|paused|waiting|unwatched|limited)(,(ready|reserved|delayed|buried|paused|waiting|unwatched|limited))*$"`
	Recent bool   `query:"recent" default:"false"` // Include the last ten minutes of each tube.
	Cursor string `query:"cursor"`                 // The `next` of the previous page; omit it for the first page.
	Limit  int    `query:"limit" min:"1" max:"10000" default:"100"`
}

// OfTube identifies a tube.
type OfTube struct {
	// Name of a tube; write %2F for a slash. The tubes `.`, `..` and `/` are `~2E`,
	// `~2E~2E` and `~2F`.
	Tube string `path:"tube" as:"TubeName"`
}

// GetTubeHistory is the input of Client.GetTubeHistory.
type GetTubeHistory struct {
	OfTube
	Step int `query:"step" enum:"10,60,3600" default:"10" want:"10, 60 or 3600, in seconds"` // Seconds between two values.
	// Number of values of each series: up to 60 with step 10 (default 60), up to 1440 with
	// step 60 (default 60), up to 744 with step 3600 (default 168).
	Points *int `query:"points" min:"1" max:"1440"`
}

// PauseTube is the input of Client.PauseTube.
type PauseTube struct {
	OfTube
	Seconds uint32 `json:"seconds" min:"1" want:"how long to pause, 1 or more; resume ends a pause"`
}

// Tubes is a page of tubes.
type Tubes struct {
	Tubes    []Tube    `json:"tubes"`
	Next     string    `json:"next,omitempty" minlen:"1"`
	Matching uint64    `json:"matching"` // Number of matching tubes on all pages.
	Jobs     JobCounts `json:"jobs"`     // Jobs of all matching tubes.
}

// A Tube contains the counters of a tube.
type Tube struct {
	Name      string    `json:"name" as:"TubeName"`
	Jobs      JobCounts `json:"jobs"`
	Urgent    uint64    `json:"urgent"`     // Ready jobs with a priority below 1024.
	BodyBytes uint64    `json:"body_bytes"` // Size of all bodies.
	// Seconds that the next job to be reserved has been ready; 0 without a ready job.
	// After a restart, the time of a job that was reserved or kicked starts at the start
	// of the server.
	OldestReady int64     `json:"oldest_ready"`
	TotalJobs   uint64    `json:"total_jobs"` // Puts since the tube was created.
	Deletes     uint64    `json:"deletes"`    // Delete commands since the tube was created.
	Timeouts    uint64    `json:"timeouts"`   // Timeouts since the tube was created.
	Releases    uint64    `json:"releases"`   // Releases since the tube was created.
	Buries      uint64    `json:"buries"`     // Buries since the tube was created.
	Pauses      uint64    `json:"pauses"`     // Pauses since the tube was created.
	Using       uint64    `json:"using"`      // Connections that use the tube.
	Watching    uint64    `json:"watching"`   // Connections that watch the tube.
	Waiting     uint64    `json:"waiting"`    // Connections that wait for a job from the tube.
	Pause       int64     `json:"pause"`      // Duration of the current pause; 0 if it is not paused.
	PauseLeft   int64     `json:"pause_left"`
	Queue       Durations `json:"queue"`            // Times that jobs were ready before a reserve, since the tube was created.
	Work        Durations `json:"work"`             // Times that jobs were reserved before a delete, release or bury, since the tube was created.
	Recent      *Recent   `json:"recent,omitempty"` // Absent in lists unless requested, and if the tube has no samples.
	Limit       *Limit    `json:"limit,omitempty"`  // Limit of the tube; absent in lists, and if the tube has no limit.
}

// An Explanation states why jobs of a tube wait.
type Explanation struct {
	Text     string `json:"text" minlen:"1"`                       // One sentence, without a full stop.
	Severity string `json:"severity,omitempty" enum:"bad,warning"` // Absent if there is no problem.
	// Settings of the policy in force that differ from their defaults, such as
	// `max-attempts=3 retry-delay=5s`; absent if there are none.
	Policy string `json:"policy,omitempty" minlen:"1"`
}

// A Limit is the limit of a tube.
type Limit struct {
	Jobs  int64  `json:"jobs"`  // 0 means no limit.
	Bytes int64  `json:"bytes"` // Size of all bodies; 0 means no limit.
	From  string `json:"from"`  // Table of the configuration that sets the limit.
}

// Durations are the number and the sum of durations.
type Durations struct {
	Count   uint64  `json:"count"`
	Seconds float64 `json:"seconds"` // Sum of the durations.
}

// Recent describes the last minutes of a tube.
type Recent struct {
	Step             int64    `json:"step" min:"1"` // Seconds between two values.
	Ready            []uint64 `json:"ready"`
	PutPerSecond     float64  `json:"put_per_second"`      // In the last minute.
	DeletedPerSecond float64  `json:"deleted_per_second"`  // In the last minute.
	BuriedMore       int64    `json:"buried_more" min:"-"` // Increase of buried jobs since the first value.
}
