package load

import (
	"errors"
	"fmt"
	"runtime"
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
func (m Mix) String() string { return nameOf(mixNames[:], uint8(m)) }

// MarshalText returns the name of m.
func (m Mix) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText sets m to the mix of that name.
func (m *Mix) UnmarshalText(text []byte) error {
	return setByName(m, "mix", mixNames[:], text)
}

// A Client says how the generator drives its sockets.
type Client uint8

const (
	Auto       Client = iota // Epoll on Linux, Goroutines elsewhere
	Epoll                    // one event loop per thread; Linux only
	Goroutines               // a goroutine per connection, blocking reads and writes
	numClients
)

var clientNames = [numClients]string{"auto", "epoll", "goroutine"}

// String returns the name that UnmarshalText accepts.
func (c Client) String() string { return nameOf(clientNames[:], uint8(c)) }

// MarshalText returns the name of c.
func (c Client) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText sets c to the client of that name.
func (c *Client) UnmarshalText(text []byte) error {
	return setByName(c, "client", clientNames[:], text)
}

func nameOf(names []string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprintf("invalid(%d)", i)
}

func setByName[T ~uint8](dst *T, what string, names []string, text []byte) error {
	i := slices.Index(names, string(text))
	if i < 0 {
		return fmt.Errorf("no %s is called %q; there are: %s", what, text, strings.Join(names, ", "))
	}
	*dst = T(i)
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
	// 0 means 1, at most 65536. Wake has one command in flight by its nature and refuses more.
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

	// Occupied is the number of tubes besides which have one job each. The jobs
	// are put before the run and left behind.
	Occupied int `json:"occupied,omitempty"`

	// Idle is the number of connections besides which are open and silent.
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

	// Client chooses how the sockets are driven.
	Client Client `json:"client"`

	// Threads is the number of event loops that share the connections, 0 means
	// 1. Goroutines use the processors that the Go runtime gives them.
	Threads int `json:"threads"`

	// PID is the server's process, if it runs on this machine (Linux): its
	// processor time and memory become part of the result. 0 means unknown.
	PID int `json:"pid"`

	// Pace, if positive, corrects Result.Latency for what a closed loop omits: while
	// a connection waits, it does not send the commands that would have waited too.
	// A latency above Pace counts for those besides that would have been sent
	// meanwhile, one each Pace, with what each would have had to wait.
	Pace time.Duration `json:"pace_ns,omitempty"`

	// ByCommand asks for the latencies of each kind of command besides.
	ByCommand bool `json:"by_command,omitempty"`
}

const (
	defaultAddr     = "127.0.0.1:11300"
	defaultDuration = 5 * time.Second
	maxInFlight     = 1 << 16
	maxBody         = 1 << 30

	// The goroutine client writes before it reads. If the commands and the
	// replies of one connection did not fit into the socket buffers, it and a
	// server that does likewise could wait for each other for ever.
	maxGoroutineBytes = 64 << 10
)

// withDefaults returns o with every zero replaced by what it stands for.
func (o Options) withDefaults() (Options, error) {
	if o.Addr == "" {
		o.Addr = defaultAddr
	}
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
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
	if o.Client == Auto {
		o.Client = Goroutines
		if runtime.GOOS == "linux" {
			o.Client = Epoll
		}
	}
	return o, o.check()
}

func (o *Options) check() error {
	switch {
	case o.Mix >= numMixes:
		return fmt.Errorf("load: unknown mix %d", o.Mix)
	case o.Client >= numClients:
		return fmt.Errorf("load: unknown client %d", o.Client)
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
	case o.Client == Epoll && runtime.GOOS != "linux":
		return errors.New("load: the epoll client exists on Linux only")
	case o.Client == Goroutines && o.InFlight > 1 && o.InFlight*o.BodySize > maxGoroutineBytes:
		return fmt.Errorf("load: the goroutine client keeps at most %d bytes of bodies in flight on a connection, not %d times %d",
			maxGoroutineBytes, o.InFlight, o.BodySize)
	}
	return nil
}

// defaultPrefix names the tube of a load that has one.
const defaultPrefix = "bench"

// tube is the name of the tube that connection i uses.
func (o *Options) tube(i int) string {
	if o.Tubes == 1 {
		return o.Prefix
	}
	return fmt.Sprintf("%s-%d", o.Prefix, i%o.Tubes)
}
