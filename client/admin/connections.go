package admin

// ListConnections asks for a page of connections.
type ListConnections struct {
	// Column to sort by, with `-` before it for descending. `watching` and `holding` are numbers of tubes and jobs. `waited` is the time in a
	// reserve, `held` the time since the oldest reservation; connections without that time are below all others. Texts sort by their bytes,
	// equal connections by their ids.
	Sort    string `query:"sort" pattern:"^-?(id|address|identity|age|using|watching|holding|waited|held)$"`
	Tube    string `query:"tube"`                    // Only those that use or watch this tube, or one of several with commas between them, in which `*` stands for any characters and `?` for one.
	Q       string `query:"q"`                       // Only those with this text in their address or identity.
	Waiting bool   `query:"waiting" default:"false"` // Only those that wait for a job.
	Holding bool   `query:"holding" default:"false"` // Only those that hold jobs.
	Cursor  string `query:"cursor"`                  // The `next` of the page before; nothing for the first page.
	Limit   int    `query:"limit" min:"1" max:"1000" default:"100"`
}

// OfConnection is about one connection.
type OfConnection struct {
	Connection uint64 `path:"connection" as:"ID"`
}

// Connections is a page of connections. Those that match are counted if the page has an order.
type Connections struct {
	Connections []Connection `json:"connections"`
	Next        string       `json:"next,omitempty" minlen:"1"`
	Matching    *uint64      `json:"matching,omitempty"` // How many connections match; only with `sort`.
}

// A Connection is what there is to tell of a client. Its times are in seconds.
type Connection struct {
	ID            uint64   `json:"id" min:"1"`                        // No other connection has it until the server restarts.
	Address       string   `json:"address"`                           // IP and port, or `unix`.
	Identity      string   `json:"identity,omitempty" minlen:"1"`     // Who the client is; not there if that is not known.
	Age           int64    `json:"age"`                               // Since it came.
	Idle          int64    `json:"idle"`                              // Since its last command began; if there was none, since it came.
	LastCommand   string   `json:"last_command,omitempty" minlen:"1"` // Its last command; not there if there was none.
	Using         string   `json:"using" as:"TubeName"`
	Watching      []string `json:"watching" as:"TubeName" maxitems:"100"` // The first 100 tubes.
	WatchingCount int      `json:"watching_count"`
	Holding       []uint64 `json:"holding" maxitems:"100"` // The first 100 jobs, the oldest reservation first.
	HoldingCount  int      `json:"holding_count"`
	HeldFor       int64    `json:"held_for"` // Since it has the job that it has held for longest; 0 if it holds none.
	Waiting       bool     `json:"waiting"`  // In a reserve.
	Waited        int64    `json:"waited"`   // Since that began; else 0.
	Producer      bool     `json:"producer"` // It has put.
	Worker        bool     `json:"worker"`   // It has reserved.
}
