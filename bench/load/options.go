package load

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Mix defines the commands of a connection and their order.
type Mix string

const (
	PutReserveDelete Mix = "put-reserve-delete" // put, reserve, and delete the reserved job
	Put              Mix = "put"                // only put, which fills the tube
	Drain            Mix = "drain"              // reserve and delete until the tube is empty
	PutDelete        Mix = "put-delete"         // put a job and delete the same job
)

// Mixes contains all mixes.
var Mixes = []Mix{PutReserveDelete, Put, Drain, PutDelete}

// Options describes one run. The zero value means PutReserveDelete on one connection with
// one command in flight.
type Options struct {
	// Addr is the address of the server: "host:port" or "unix:PATH".
	Addr string

	Mix Mix // empty means PutReserveDelete

	// Connections is the number of connections. Zero means 1.
	Connections int

	// InFlight is the number of unanswered commands per connection. Zero means 1.
	InFlight int

	// BodySize is the size of a job's body in bytes. Zero means 64, and a negative number
	// means empty bodies.
	BodySize int

	// Body, if not empty, is the body of the jobs, instead of a body of BodySize bytes.
	// Its first %, which is required, is replaced by the number of the job in sixteen
	// digits, so that all bodies are distinct. It is invalid with Drain.
	Body string

	// Duration is the measured time. A warm-up of a tenth of it precedes. If it is zero,
	// the run lasts until Ops jobs are done, without a warm-up. One of the two must be
	// set, except for a Drain, which lasts until the tubes are empty.
	Duration time.Duration

	// Ops is the total number of jobs, divided among the connections. A job of
	// PutReserveDelete takes three commands. Zero means no limit.
	Ops int64

	// Backlog is the number of jobs that are put before the measurement. Drain removes
	// them; with the other mixes, the queue contains the same number of jobs at the end.
	Backlog int64

	// Occupied is the number of additional tubes with one job each. The jobs are put
	// before the run and are not removed.
	Occupied int

	// Idle is the number of additional connections that are open and silent.
	Idle int

	// Tube is the name of the tube, and the prefix of the Occupied tubes. Empty means
	// "bench". The tube should be empty before a run.
	Tube string

	// PID is the server's process id, if it runs on this machine (Linux). Its CPU time
	// and memory are then part of the result. Zero means that it is unknown.
	PID int
}

const (
	defaultBody = 64 // bytes
	maxBody     = 1 << 30
)

// withDefaults returns o with defaults in place of zeros.
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
		return errors.New("load: a body requires a % in its text, and a mix with puts")
	}
	return nil
}

// warmup returns the time between the start of the load and the start of the measurement.
func (o *Options) warmup() time.Duration {
	if o.Ops > 0 || o.Mix == Drain {
		return 0
	}
	return o.Duration / 10
}

// Describe returns a short description of a load.
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
