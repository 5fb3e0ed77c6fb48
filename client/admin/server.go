package admin

// GetHistory is the input of Client.GetHistory.
type GetHistory struct {
	Step int `query:"step" enum:"1,60,3600" default:"1" want:"1, 60 or 3600, in seconds"` // Seconds between two values.
	// Number of values of each series: up to 600 with step 1 (default 600), up to 1440
	// with step 60 (default 60), up to 744 with step 3600 (default 168).
	Points *int `query:"points" min:"1" max:"1440"`
}

// GetAttention is the input of Client.GetAttention.
type GetAttention struct {
	Limit int  `query:"limit" min:"1" max:"10000" default:"100"`
	Each  bool `query:"each" default:"false"` // List each tube, instead of one finding for several tubes.
}

// GetMe is the input of Client.GetMe.
type GetMe struct {
	Tube string `query:"tube" as:"TubeName"` // Tube whose rights to return.
}

// ListChanges is the input of Client.ListChanges.
type ListChanges struct {
	Limit     int     `query:"limit" min:"1" max:"10000" default:"100"`
	Identity  *string `query:"identity"`           // Only changes by this identity; empty for clients without an identity.
	Operation string  `query:"operation"`          // Only changes with this name, as in `operation`.
	Tube      string  `query:"tube" as:"TubeName"` // Only changes of jobs or settings of this tube.
	Day       string  `query:"day" format:"date"`  // Only changes of this day in UTC.
}

// Stats are the counters of the server.
type Stats struct {
	Version         string            `json:"version"`
	Uptime          int64             `json:"uptime"` // Time since the start.
	Draining        bool              `json:"draining"`
	Jobs            JobCounts         `json:"jobs"`
	Urgent          uint64            `json:"urgent"`       // Ready jobs with a priority below 1024.
	BodyBytes       uint64            `json:"body_bytes"`   // Size of all bodies.
	Memory          int64             `json:"memory_bytes"` // Memory allocated for jobs.
	TotalJobs       uint64            `json:"total_jobs"`   // Number of puts since the start.
	Timeouts        uint64            `json:"timeouts"`     // Number of timeouts since the start.
	MaxJobSize      int               `json:"max_job_size"` // Maximum size of a body.
	Tubes           uint64            `json:"tubes"`
	Connections     ConnectionCounts  `json:"connections"`
	Commands        map[string]uint64 `json:"commands"`          // Number of commands since the start, by command.
	RefusedCommands map[string]uint64 `json:"refused_commands"`  // Number of refused commands since the start, by reply.
	Journal         *Journal          `json:"journal,omitempty"` // Absent if jobs are in memory only.
}

// JobCounts are numbers of jobs by state.
type JobCounts struct {
	Ready    uint64 `json:"ready"`
	Reserved uint64 `json:"reserved"`
	Delayed  uint64 `json:"delayed"`
	Buried   uint64 `json:"buried"`
}

// ConnectionCounts are numbers of connections, now and since the start.
type ConnectionCounts struct {
	Current           uint64 `json:"current"`
	Limit             int    `json:"limit"`               // Maximum number of connections.
	Producers         uint64 `json:"producers"`           // Connections that have put a job.
	Workers           uint64 `json:"workers"`             // Connections that have reserved a job.
	Waiting           uint64 `json:"waiting"`             // Connections that wait in a reserve.
	Total             uint64 `json:"total"`               // Number of connections since the start.
	RejectedOfAddress uint64 `json:"rejected_of_address"` // Connections closed because their address had too many.
	Refused           uint64 `json:"refused"`             // Connections refused by the requirements of a listener.
}

// Journal is the state of the journal.
type Journal struct {
	Health    string `json:"health"` // `ok`, or the problem.
	Segments  int    `json:"segments"`
	Bytes     int64  `json:"bytes"`
	LiveBytes int64  `json:"live_bytes"`
}

// History contains time series of the server or of a tube.
type History struct {
	Step   int64                 `json:"step" min:"1"` // Seconds between two values.
	End    int64                 `json:"end"`          // End of the period of the last value, in seconds since 1970.
	Series map[string][]*float64 `json:"series"`
}

// Attention is a list of findings.
type Attention struct {
	Findings []Finding `json:"findings"`
	Total    int       `json:"total"` // Number of findings, counting each tube.
}

// Me is the identity of the client, with its rights.
type Me struct {
	Identity   string   `json:"identity"` // Empty if the client has no identity.
	Anywhere   []string `json:"anywhere" as:"Rights"`
	Everywhere []string `json:"everywhere" as:"Rights"`
	// Rights on the requested tube; absent without a tube or without rights.
	Tube []string `json:"tube,omitempty" as:"Rights"`
}

// Changes are the last changes, the newest first.
type Changes struct {
	Changes []Change `json:"changes"`
}

// A Change is a change, or an attempt, through the API or by a command of the protocol.
type Change struct {
	Time      string `json:"time" format:"date-time"`
	Operation string `json:"operation"` // Operation of the API, or a command of the protocol.
	Identity  string `json:"identity"`
	Client    string `json:"client"` // Address of the client.
	// Attributes as in the log: tube, state, count and others.
	About  map[string]any `json:"about"`
	Result string         `json:"result"` // `ok`, or the error.
}

// Server describes the server and its configuration. It contains no secrets.
type Server struct {
	Version      string        `json:"version"`
	Go           string        `json:"go"`   // Version of Go that built the server.
	Host         string        `json:"host"` // Name of the server's machine.
	PID          int           `json:"pid"`
	Started      string        `json:"started"`
	Settings     []Setting     `json:"settings"`
	Tables       string        `json:"tables"` // Tables of the configuration file in TOML, without tokens.
	Listeners    []Listener    `json:"listeners"`
	Certificates []Certificate `json:"certificates"`
	Journal      *JournalFacts `json:"journal,omitempty"`
	Memory       MemoryFacts   `json:"memory"`
}

// A Setting is an effective setting.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"` // Value in TOML.
	From  string `json:"from"`  // Source: the command line, an environment variable, the file, or default.
}

// A Listener accepts connections.
type Listener struct {
	Address     string   `json:"address"`
	Serves      string   `json:"serves" enum:"clients,admin"`
	TLS         bool     `json:"tls"`
	ClientCerts bool     `json:"client_certificates"` // Clients need a certificate.
	RequireAuth bool     `json:"require_auth"`
	Networks    []string `json:"networks"` // Permitted networks of clients; empty if all are.
}

// A Certificate is the certificate of a listener.
type Certificate struct {
	File   string `json:"file"`
	Begins string `json:"begins" format:"date-time"`
	Ends   string `json:"ends" format:"date-time"`
	Soon   bool   `json:"soon"` // The certificate expires soon, or has expired.
}

// JournalFacts are the state and the directory of the journal.
type JournalFacts struct {
	Directory string `json:"directory"`
	Journal
}

// MemoryFacts are the memory of jobs and its limit.
type MemoryFacts struct {
	Jobs  int64 `json:"jobs"`  // Memory of all jobs and tubes in bytes, as counted for max-memory.
	Limit int64 `json:"limit"` // max-memory in bytes; 0 means no limit.
}
