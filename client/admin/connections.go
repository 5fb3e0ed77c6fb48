package admin

// ListConnections is the input of Client.ListConnections.
type ListConnections struct {
	// Column to sort by, with `-` before it for descending. `watching` and `holding` are
	// numbers of tubes and jobs. `waited` is the time in a reserve, `held` the time since
	// the oldest reservation; connections without that time are below all others. Texts sort
	// by their bytes, equal connections by their ids.
	Sort string `query:"sort" pattern:"^-?(id|address|identity|age|using|watching|holding|waited|held)$"`
	// Connections that use or watch this tube. Commas separate several tubes; `*` matches
	// any characters, `?` one.
	Tube    string `query:"tube"`
	Q       string `query:"q"`                       // Connections with this text in their address or identity.
	Waiting bool   `query:"waiting" default:"false"` // Connections that wait for a job.
	Holding bool   `query:"holding" default:"false"` // Connections that hold jobs.
	Cursor  string `query:"cursor"`                  // The `next` of the previous page; omit it for the first page.
	Limit   int    `query:"limit" min:"1" max:"1000" default:"100"`
}

// OfConnection identifies a connection.
type OfConnection struct {
	Connection uint64 `path:"connection" as:"ID"`
}

// Connections is a page of connections. Matching connections are counted only if the page
// is sorted.
type Connections struct {
	Connections []Connection `json:"connections"`
	Next        string       `json:"next,omitempty" minlen:"1"`
	Matching    *uint64      `json:"matching,omitempty"` // Number of matching connections; only with `sort`.
}

// A Connection is a client's connection. Its times are in seconds.
type Connection struct {
	ID            uint64   `json:"id" min:"1"`                        // Unique until the server restarts.
	Address       string   `json:"address"`                           // IP and port, or `unix`.
	Identity      string   `json:"identity,omitempty" minlen:"1"`     // Identity of the client; absent if the client has none.
	Age           int64    `json:"age"`                               // Time since the client connected.
	Idle          int64    `json:"idle"`                              // Time since the start of the client's last command, or since it connected.
	LastCommand   string   `json:"last_command,omitempty" minlen:"1"` // The client's last command; absent before the first.
	Using         string   `json:"using" as:"TubeName"`
	Watching      []string `json:"watching" as:"TubeName" maxitems:"100"` // The first 100 tubes.
	WatchingCount int      `json:"watching_count"`
	Holding       []uint64 `json:"holding" maxitems:"100"` // The first 100 jobs, the oldest reservation first.
	HoldingCount  int      `json:"holding_count"`
	HeldFor       int64    `json:"held_for"` // Time since the oldest reservation of the client; 0 if it has none.
	Waiting       bool     `json:"waiting"`  // The client waits in a reserve.
	Waited        int64    `json:"waited"`   // Time since the start of that reserve; 0 if the client does not wait.
	Producer      bool     `json:"producer"` // The client has put a job.
	Worker        bool     `json:"worker"`   // The client has reserved a job.
}
