package admin

// OfSchedule identifies a schedule.
type OfSchedule struct {
	Name string `path:"schedule" pattern:"^[A-Za-z0-9+/;.$_()][A-Za-z0-9+/;.$_()-]{0,99}$"` // Name of the schedule; a slash is written %2F.
}

// SetSchedule is the input of Client.SetSchedule.
type SetSchedule struct {
	OfSchedule
	_        struct{}          `body:"required"`
	Settings map[string]string `json:"settings" as:"ScheduleSettings"` // The whole definition. Omitted settings have their defaults.
}

// Schedules are the schedules that the client can see.
type Schedules struct {
	Schedules []Schedule `json:"schedules"`
}

// A Schedule puts a job at each of its runs. Times are in seconds since 1970.
type Schedule struct {
	Name     string            `json:"name"`
	Source   string            `json:"source" enum:"file,runtime"`     // `file` is the configuration file, `runtime` the API or a command.
	Settings map[string]string `json:"settings" as:"ScheduleSettings"` // The body is left out if the client lacks the peek right.
	Paused   bool              `json:"paused"`
	Next     []int64           `json:"next" maxitems:"5"`                                              // The next runs, unless the schedule is paused.
	LastRun  int64             `json:"last_run,omitempty"`                                             // Last run that put a job.
	LastJob  uint64            `json:"last_job,omitempty" as:"ID"`                                     // Job that this run put.
	Outcome  string            `json:"outcome,omitempty" enum:"ready,reserved,delayed,buried,deleted"` // State of the last job.
	Runs     uint64            `json:"runs"`                                                           // Number of runs that put a job.
	Missed   uint64            `json:"missed"`                                                         // Number of runs without a job because of downtime; at most 101 count for each downtime.
	Skipped  uint64            `json:"skipped"`                                                        // Number of runs without a job because of overlap = "skip".
	Behind   uint64            `json:"behind"`                                                         // Number of last runs that found the previous job ready, delayed or reserved.
	Problem  string            `json:"problem,omitempty"`                                              // Reason why the last run could not put its job.
}
