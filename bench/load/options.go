package load

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Mix says which commands a connection sends and in what order.
type Mix string

const (
	PutReserveDelete Mix = "put-reserve-delete" // put, reserve, delete the job received
	Put              Mix = "put"                // put only: fills the tube
	Drain            Mix = "drain"              // reserve and delete until the tube is empty
	PutDelete        Mix = "put-delete"         // put, delete the job just put
)

// Mixes are all there are.
var Mixes = []Mix{PutReserveDelete, Put, Drain, PutDelete}

// Options describe one run. Without others it is PutReserveDelete on one connection with one
// command in flight.
type Options struct {
	// Addr is where the server listens: "host:port", or "unix:PATH".
	Addr string

	Mix Mix // empty means PutReserveDelete

	// Connections is the number of connections. 0 means 1.
	Connections int

	// InFlight is the number of commands that each connection keeps unanswered,
	// 0 means 1.
	InFlight int

	// BodySize is the size of a job's body in bytes. 0 means 64; negative means empty
	// bodies.
	BodySize int

	// Body is the body of the jobs, instead of one of BodySize. The first % in it, of which there
	// must be one, stands for the number of the job in sixteen digits, so that no two bodies are
	// equal. Not with a Drain.
	Body string

	// Duration is how long to measure, after a warm-up of a tenth of it, or without one until Ops jobs are done. One of
	// the two is set, except for a Drain, which lasts until the tubes are empty.
	Duration time.Duration

	// Ops is the number of jobs to handle in all (a job of PutReserveDelete is
	// three commands), divided among the connections. 0 means no limit.
	Ops int64

	// Backlog is the number of jobs that are put, unmeasured, before the run.
	// Drain takes them away again, the other mixes leave as many in the queue.
	Backlog int64

	// Occupied is the number of additional tubes that have one job each. The jobs
	// are put before the run and stay afterwards.
	Occupied int

	// Idle is the number of additional connections that are open and silent.
	Idle int

	// Tube is the name of the tube, and what the names of those of Occupied begin
	// with. Empty means "bench". The tube should be empty before a run.
	Tube string

	// PID is the server's process, if it runs on this machine (Linux): its
	// processor time and memory become part of the result. 0 means unknown.
	PID int
}

const (
	defaultBody = 64 // bytes
	maxBody     = 1 << 30
)

// withDefaults returns o with every zero replaced by what it stands for.
func (o Options) withDefaults() (Options, error) {
	o.Tube = cmp.Or(o.Tube, "bench")
	o.Mix = cmp.Or(o.Mix, PutReserveDelete)
	o.Connections = max(o.Connections, 1)
	o.InFlight = max(o.InFlight, 1)
	o.BodySize = max(cmp.Or(o.BodySize, defaultBody), 0)
	return o, o.check()
}

func (o *Options) check() error {
	switch {
	case !slices.Contains(Mixes, o.Mix):
		return fmt.Errorf("load: no mix is called %q; there are: %s", o.Mix, Mixes)
	case o.Body != "" && (o.Mix == Drain || !strings.Contains(o.Body, "%")):
		return errors.New("load: a body that is given needs a %, and a mix that puts")
	}
	return nil
}

// warmup is how long the load runs before the measurement begins.
func (o *Options) warmup() time.Duration {
	if o.Ops > 0 || o.Mix == Drain {
		return 0
	}
	return o.Duration / 10
}

// Describe names a load in a few words.
func (o Options) Describe() string {
	if complete, err := o.withDefaults(); err == nil {
		o = complete
	}
	s := fmt.Sprintf("%s, %s, %d in flight", o.Mix, Plural(o.Connections, "connection"), o.InFlight)
	if o.Body != "" {
		s += ", bodies such as " + o.Body
	} else {
		s += fmt.Sprintf(", %d-byte bodies", o.BodySize)
	}
	if o.Occupied > 0 {
		s += fmt.Sprintf(", beside %s with a job", Plural(o.Occupied, "tube"))
	}
	if o.Idle > 0 {
		s += fmt.Sprintf(", beside %s", Plural(o.Idle, "idle connection"))
	}
	return s
}
