package load

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Mix says which commands a connection sends and in what order.
type Mix uint8

const (
	PutReserveDelete Mix = iota // put, reserve, delete the job received
	Put                         // put only: fills the tube
	Drain                       // reserve and delete until the tube is empty
	PutDelete                   // put, delete the job just put
	Wake                        // a worker waits in reserve, a put on another connection wakes it
	numMixes
)

var mixNames = [numMixes]string{"put-reserve-delete", "put", "drain", "put-delete", "wake"}

// String returns the name that UnmarshalText accepts.
func (m Mix) String() string {
	if m < numMixes {
		return mixNames[m]
	}
	return fmt.Sprintf("invalid(%d)", uint8(m))
}

// MarshalText returns the name of m.
func (m Mix) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText sets m to the mix of that name.
func (m *Mix) UnmarshalText(text []byte) error {
	i := slices.Index(mixNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("no mix is called %q; there are: %s", text, strings.Join(mixNames[:], ", "))
	}
	*m = Mix(i)
	return nil
}

// Options describe one run. The zero value is five seconds of PutReserveDelete
// on one connection with one command in flight against 127.0.0.1:11300.
type Options struct {
	// Addr is where the server listens: "host:port", or "unix:PATH".
	// Empty means 127.0.0.1:11300.
	Addr string `json:"addr"`

	// Mix is the kind of load.
	Mix Mix `json:"mix"`

	// Connections is the number of connections, 0 means 1. With Wake it is the
	// number of producers; each has a worker's connection besides, or there are
	// Workers.
	Connections int `json:"connections"`

	// InFlight is the number of commands that each connection keeps unanswered,
	// 0 means 1, at most 65536. With Wake it must be 1.
	InFlight int `json:"in_flight"`

	// BodySize is the size of a job's body in bytes. 0 means 64; negative means empty bodies.
	BodySize int `json:"body_size"`

	// Duration is how long to measure, after the warm-up. If Ops is set too, the
	// run ends with whatever comes first. If neither is set, it is 5 s; a Drain
	// then lasts until the tubes are empty.
	Duration time.Duration `json:"duration_ns"`

	// Ops is the number of jobs to handle in all (a job of PutReserveDelete is
	// three commands), divided among the connections. 0 means no limit.
	Ops int64 `json:"ops"`

	// Warmup is how long the load runs before the measurement begins. 0 means a
	// tenth of Duration; negative means none. With Ops and in Drain there is none.
	Warmup time.Duration `json:"warmup_ns"`

	// Backlog is the number of jobs that are put, unmeasured, before the run
	// begins. Drain takes them away again, the other mixes leave as many behind.
	Backlog int64 `json:"backlog"`

	// Tubes is the number of tubes; connection i uses tube i modulo Tubes. 0
	// means 1, more than there are connections means one per connection. Wake
	// always has a tube for each worker.
	Tubes int `json:"tubes"`

	// Occupied is the number of additional tubes that have one job each. The jobs
	// are put before the run and stay afterwards.
	Occupied int `json:"occupied,omitempty"`

	// Idle is the number of additional connections that are open and silent.
	Idle int `json:"idle,omitempty"`

	// Workers is for Wake: so many workers wait on one tube, and a put of any
	// producer wakes the one that has waited longest. There must be at least as many
	// as Connections. 0 means that each producer has a worker and a tube to itself.
	Workers int `json:"workers,omitempty"`

	// SetupLimit is how long the server may take for Occupied, and until the workers
	// of a Wake wait; then Run gives up with ErrTooSlow. 0 means 30 s.
	SetupLimit time.Duration `json:"setup_limit_ns"`

	// Prefix is what the names of the tubes begin with. Empty means "bench".
	// The tubes should be empty before a run.
	Prefix string `json:"prefix"`

	// Threads is the number of threads that share the connections, 0 means 1.
	Threads int `json:"threads"`

	// PID is the server's process, if it runs on this machine (Linux): its
	// processor time and memory become part of the result. 0 means unknown.
	PID int `json:"pid"`

	// Pace, if positive, corrects Result.Latency for what a closed loop omits: while
	// a connection waits, it does not send the commands that would have waited too.
	// Then a latency above Pace also counts for the commands that would have been sent
	// meanwhile, one each Pace, with the time that each would have waited.
	Pace time.Duration `json:"pace_ns,omitempty"`

	// ByCommand asks for the latencies of each kind of command too.
	ByCommand bool `json:"by_command,omitempty"`
}

const (
	defaultAddr     = "127.0.0.1:11300"
	defaultDuration = 5 * time.Second
	maxInFlight     = 1 << 16
	maxBody         = 1 << 30
)

// withDefaults returns o with every zero replaced by what it stands for.
func (o Options) withDefaults() (Options, error) {
	if o.Addr == "" {
		o.Addr = defaultAddr
	}
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	o.Connections = max(o.Connections, 1)
	o.InFlight = max(o.InFlight, 1)
	o.Tubes = min(max(o.Tubes, 1), o.Connections)
	o.Threads = min(max(o.Threads, 1), o.Connections)
	switch {
	case o.Mix == Wake && o.Workers > 0:
		o.Tubes = 1
	case o.Mix == Wake:
		o.Tubes = o.Connections
	}
	if o.SetupLimit <= 0 {
		o.SetupLimit = defaultSetupLimit
	}
	switch {
	case o.BodySize == 0:
		o.BodySize = 64
	case o.BodySize < 0:
		o.BodySize = 0
	}
	if o.Duration <= 0 && o.Ops <= 0 && o.Mix != Drain {
		o.Duration = defaultDuration
	}
	switch {
	case o.Warmup < 0 || o.Ops > 0 || o.Mix == Drain:
		o.Warmup = 0
	case o.Warmup == 0:
		o.Warmup = o.Duration / 10
	}
	return o, o.check()
}

func (o *Options) check() error {
	switch {
	case o.Mix >= numMixes:
		return fmt.Errorf("load: unknown mix %d", o.Mix)
	case o.InFlight > maxInFlight:
		return fmt.Errorf("load: %d commands in flight are more than %d", o.InFlight, maxInFlight)
	case o.BodySize > maxBody:
		return fmt.Errorf("load: a body of %d bytes is larger than %d", o.BodySize, maxBody)
	case o.Mix == Wake && o.InFlight > 1:
		return errors.New("load: the mix wake has one command in flight")
	case o.Mix == Wake && o.Backlog > 0:
		return errors.New("load: the mix wake needs workers that wait, so it cannot have a backlog")
	case o.Mix != Wake && o.Workers > 0:
		return fmt.Errorf("load: the mix %s has no workers that wait", o.Mix)
	case o.Workers > 0 && o.Workers < o.Connections:
		return fmt.Errorf("load: %d workers are too few for the puts of %s", o.Workers, plural(o.Connections, "connection"))
	case o.Workers > 0 && o.Threads > 1:
		return errors.New("load: one thread must drive workers that share a tube")
	case o.Workers > 0 && o.Connections > 1 && o.BodySize < stampSize:
		return fmt.Errorf("load: workers that share a tube need bodies of at least %d bytes, to know whose job they got", stampSize)
	}
	return nil
}

// DefaultPrefix names the tube of a load that has one.
const DefaultPrefix = "bench"

// tube is the name of the tube that connection i uses.
func (o *Options) tube(i int) string {
	if o.Tubes == 1 {
		return o.Prefix
	}
	return fmt.Sprintf("%s-%d", o.Prefix, i%o.Tubes)
}

// Describe names a load in a few words.
func (o Options) Describe() string {
	if complete, err := o.withDefaults(); err == nil {
		o = complete
	}
	s := fmt.Sprintf("%s, %s, %d in flight", o.Mix, plural(o.Connections, "connection"), o.InFlight)
	if o.Workers > 0 {
		s = fmt.Sprintf("%s, %s, %s on one tube", o.Mix, plural(o.Connections, "producer"), plural(o.Workers, "worker"))
	} else if o.Tubes > 1 && o.Mix != Wake {
		s += ", " + plural(o.Tubes, "tube")
	}
	s += fmt.Sprintf(", %d-byte bodies", o.BodySize)
	if o.Occupied > 0 {
		s += fmt.Sprintf(", beside %s with a job", plural(o.Occupied, "tube"))
	}
	if o.Idle > 0 {
		s += fmt.Sprintf(", beside %s", plural(o.Idle, "idle connection"))
	}
	return s
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
