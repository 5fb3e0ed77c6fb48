package admin

// GetHistory asks what the whole server has counted lately.
type GetHistory struct {
	Step   int  `query:"step" enum:"1,60" default:"1" want:"1 or 60, in seconds"` // How many seconds are between two values.
	Points *int `query:"points" min:"1" max:"3600"`                               // How many values of each series: 3600 at most with step 1, else 1440. It is 600 if it is left out with step 1, else 60.
}

// GetAttention asks for the findings.
type GetAttention struct {
	Limit int  `query:"limit" min:"1" max:"10000" default:"100"`
	Each  bool `query:"each" default:"false"` // List every tube, instead of one finding for several tubes.
}

// GetMe asks who the client is.
type GetMe struct {
	Tube string `query:"tube" as:"TubeName"` // A tube, to ask for the rights on it.
}

// ListChanges asks for the last changes.
type ListChanges struct {
	Limit int `query:"limit" min:"1" max:"1000" default:"100"`
}

// Stats are those of the whole server.
type Stats struct {
	Version         string            `json:"version"`
	Uptime          int64             `json:"uptime"` // Since the start.
	Draining        bool              `json:"draining"`
	Jobs            JobCounts         `json:"jobs"`
	Urgent          uint64            `json:"urgent"`       // Ready jobs with a priority below 1024.
	BodyBytes       uint64            `json:"body_bytes"`   // Of the bodies of all jobs.
	Memory          int64             `json:"memory_bytes"` // Set aside for jobs.
	TotalJobs       uint64            `json:"total_jobs"`   // Put since the start.
	Timeouts        uint64            `json:"timeouts"`     // Jobs whose time to run was over since the start.
	MaxJobSize      int               `json:"max_job_size"` // How long the body of a job may be.
	Tubes           uint64            `json:"tubes"`
	Connections     ConnectionCounts  `json:"connections"`
	Commands        map[string]uint64 `json:"commands"`          // How often each command of the protocol was given since the start.
	RefusedCommands map[string]uint64 `json:"refused_commands"`  // How many commands of the protocol were refused since the start, by the reply.
	Journal         *Journal          `json:"journal,omitempty"` // Not there if jobs are in memory only.
}

// JobCounts are numbers of jobs by state.
type JobCounts struct {
	Ready    uint64 `json:"ready"`
	Reserved uint64 `json:"reserved"`
	Delayed  uint64 `json:"delayed"`
	Buried   uint64 `json:"buried"`
}

// ConnectionCounts are numbers of connections: now, and since the start.
type ConnectionCounts struct {
	Current           uint64 `json:"current"`
	Limit             int    `json:"limit"`               // How many there may be.
	Producers         uint64 `json:"producers"`           // Those of them that have put.
	Workers           uint64 `json:"workers"`             // Those of them that have reserved.
	Waiting           uint64 `json:"waiting"`             // Those of them that wait in a reserve.
	Total             uint64 `json:"total"`               // Since the start.
	RejectedOfAddress uint64 `json:"rejected_of_address"` // Closed because there were too many of their address.
	Refused           uint64 `json:"refused"`             // Closed by what a listener asks of its clients.
}

// Journal is how the journal is.
type Journal struct {
	Health    string `json:"health"` // `ok`, or what is the matter.
	Segments  int    `json:"segments"`
	Bytes     int64  `json:"bytes"`
	LiveBytes int64  `json:"live_bytes"`
}

// History is what the server has counted.
type History struct {
	Step   int64                `json:"step" min:"1"` // How many seconds are between two values.
	End    int64                `json:"end"`          // When the last value was taken, in seconds since 1970.
	Series map[string][]*uint64 `json:"series"`
}

// Attention is what an operator should look at.
type Attention struct {
	Findings []Finding      `json:"findings"`
	Total    int            `json:"total"`         // Number of findings, counting each tube.
	Kinds    map[string]int `json:"kinds" min:"1"` // Number of findings by kind.
}

// A Finding is something that an operator should look at.
type Finding struct {
	Kind     string `json:"kind" enum:"cluster,journal,draining,connections,memory,limit,certificate,refused,unwatched,buried,timeouts,releases,held,slow,limited,paused"`
	Severity string `json:"severity" enum:"bad,warning"`
	Tube     string `json:"tube,omitempty" as:"TubeName"`
	Like     string `json:"like,omitempty"`          // Of several tubes with equal findings, what their names have in common, with `*` for each number; not there: they have any names, and the text has the first of them.
	Tubes    int    `json:"tubes,omitempty" min:"4"` // How many they are.
	Count    uint64 `json:"count,omitempty"`         // Of jobs, of connections, or of commands.
	Seconds  int64  `json:"seconds,omitempty"`       // How long the next ready job has been ready; of a pause, how long it lasts.
	More     int64  `json:"more,omitempty" min:"-"`  // How many more buried jobs there are than ten minutes ago, or than when the first sample of the tube was taken.
	Over     int64  `json:"over,omitempty" min:"1"`  // How many seconds ago that was, if more is there.
	Text     string `json:"text" minlen:"1"`
}

// Me is who the client is, and what it may do.
type Me struct {
	Identity   string   `json:"identity"` // Empty: nothing identifies the client.
	Anywhere   []string `json:"anywhere" as:"Rights"`
	Everywhere []string `json:"everywhere" as:"Rights"`
	Tube       []string `json:"tube,omitempty" as:"Rights"` // The rights on the tube that was asked for; not there if none was, or if there are none.
}

// Changes are the last ones, the newest first.
type Changes struct {
	Changes []Change `json:"changes"`
}

// A Change is one that was made through the API, or could not be, or was made by a command of
// the protocol.
type Change struct {
	Time      string         `json:"time" format:"date-time"`
	Operation string         `json:"operation"` // As here, or a command of the protocol.
	Identity  string         `json:"identity"`
	Client    string         `json:"client"` // Its address.
	About     map[string]any `json:"about"`  // What it was about, as the log says: tube, state, count and others.
	Result    string         `json:"result"` // `ok`, or what was wrong.
}

// Server is what a server is, and how it was started. No secret is in it.
type Server struct {
	Version      string        `json:"version"`
	Go           string        `json:"go"`   // The version of Go that it was built with.
	Host         string        `json:"host"` // The name of its machine.
	PID          int           `json:"pid"`
	Started      string        `json:"started"`
	Settings     []Setting     `json:"settings"`
	Tables       string        `json:"tables"` // The tables of the configuration file, without tokens (TOML).
	Listeners    []Listener    `json:"listeners"`
	Certificates []Certificate `json:"certificates"`
	Journal      *JournalFacts `json:"journal,omitempty"`
	Memory       MemoryFacts   `json:"memory"`
}

// A Setting is one of the configuration that is in force.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"` // As the configuration file would have it (TOML).
	From  string `json:"from"`  // What has set it: the command line, a variable of the environment, the file, or default.
}

// A Listener is where clients come in.
type Listener struct {
	Address     string   `json:"address"`
	Serves      string   `json:"serves" enum:"clients,admin pages"`
	TLS         bool     `json:"tls"`
	ClientCerts bool     `json:"client_certificates"` // Clients need one.
	RequireAuth bool     `json:"require_auth"`
	Networks    []string `json:"networks"` // From which clients may come; none: any.
}

// A Certificate is one that a listener shows.
type Certificate struct {
	File   string `json:"file"`
	Begins string `json:"begins" format:"date-time"`
	Ends   string `json:"ends" format:"date-time"`
	Soon   bool   `json:"soon"` // It ends soon, or has ended.
}

// JournalFacts are how the journal is, and where.
type JournalFacts struct {
	Directory string `json:"directory"`
	Journal
}

// MemoryFacts are how much of their limit the jobs take, in bytes.
type MemoryFacts struct {
	Jobs  int64 `json:"jobs"`  // Memory of all jobs and tubes in bytes, as max-memory counts it.
	Limit int64 `json:"limit"` // max-memory; 0: none.
}
