// Package broker owns the engine and runs it in turns.
//
// A turn is: take every request that has come; take the time once; let what is
// due happen; apply the requests one after the other; hand the Changes to the
// Log and commit them, once; and only then let the callers go on and tell their
// clients. So pipelining, group commit and "no reply before it is durable" are
// the same few lines (turn.go), and nobody but a turn ever touches the engine:
// there is no order of locks to keep.
//
//	b := broker.New(eng, broker.Options{Log: journal})
//	c := b.NewCaller(conn)  // one for each connection, which is a Request
//	c.Do()                  // conn.Apply runs in a turn; returns when that is durable
//
// # Who runs the turn
//
// There is no goroutine for it. The first caller to come while no turn runs
// becomes the leader: it runs one turn for all that have queued up, its own
// request among them, and passes the lead to the first who came meanwhile. In
// memory a turn takes less than a microsecond, and to run it where the request is
// saves two switches between goroutines; with a log, those who queue during an
// fsync make up the next turn. The obvious design, a goroutine that owns the
// engine and receives requests from a channel, was slower when prototypes of
// both were measured (DESIGN.md, section 2; doc/decisions/0002).
//
// # Promises
//
//  1. Requests are applied one at a time, in the order in which Do was called.
//  2. Changes reach the Log in the order in which they were made.
//  3. Do returns, and a Waker is woken, after Commit of its turn has returned.
//  4. What has come due by the start of a turn has happened before its requests.
//  5. Time goes on with each request.
//
// The only goroutine that the package starts is that of the timer, when
// something comes due; Close ends it.
package broker

import (
	"errors"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A Request is what a caller wants done with the engine.
type Request interface {
	// Apply does it. It runs within a turn, in whatever goroutine leads that,
	// and must not block. It returns now, or a little later: a nanosecond for
	// each command makes sure that no two happen at the same time.
	Apply(e *engine.Engine, now int64) (later int64)

	// Failed tells, within the turn after Apply, that the Changes of this turn
	// could not be made durable: what Apply has changed is in memory only, and
	// must not be acknowledged.
	Failed(err error)
}

// A Waker hears, after the turn is durable, that there is something for it; see
// Broker.Wake. It must not block nor call the broker.
type Waker interface {
	Wake()
}

// A Log makes changes outlive the process. To the broker, memory only, a local
// disk and a Raft group differ in one thing: when Commit returns. All calls are
// made within turns, so one at a time. After an error the changes since the
// last good Commit stay in the Log's care: it must make them durable before any
// later change, and refuse changes (engine.Options.Admit) until it has.
type Log interface {
	// Append takes changes in order; it does not keep the slice.
	Append(changes []engine.Change) error

	// Commit returns when all that was appended is as durable as was promised.
	Commit() error

	// Housekeep comes after Commit. It does some of the Log's own work, as much
	// as a turn can bear, and returns the time when it wants to be called again
	// at the latest, or engine.Never. What it appends waits for the next Commit.
	Housekeep(now int64) (next int64)

	// Close commits and lets go of all resources.
	Close() error
}

// ErrClosed is what requests fail with whose Changes come after Close.
var ErrClosed = errors.New("broker: closed")

// Options of a Broker. The zero value is a broker without a log, on the
// monotonic clock of the process.
type Options struct {
	Log Log          // nil: nothing outlives the process
	Now func() int64 // ns of a clock that never goes back; nil: since New
}

// Broker runs the turns of one engine.
type Broker struct {
	// Static after New.
	now func() int64

	mu struct {
		sync.Mutex
		queue []*Caller // whose requests the next turn will apply
		led   bool      // a turn runs, or its leader is about to start it
	}

	// Owned by the turn.
	eng    *engine.Engine
	log    Log       // nil if nothing outlives the process
	spare  []*Caller // becomes the queue when that is taken
	woken  []Waker   // to be woken when the turn is durable
	timer  *time.Timer
	alarm  int64 // when the timer goes off, or engine.Never
	last   int64 // the time when the last request was applied
	closed bool  // nothing comes due any more
}

// New returns a broker that owns the engine from now on.
func New(e *engine.Engine, opt Options) *Broker {
	b := &Broker{eng: e, log: opt.Log, now: opt.Now, alarm: engine.Never}
	if b.now == nil {
		start := time.Now()
		b.now = func() int64 { return int64(time.Since(start)) }
	}
	b.timer = time.AfterFunc(math.MaxInt64, b.tick)
	return b
}

// A Caller carries the requests of one client to the broker, one at a time. It
// is made once so that Do allocates nothing.
type Caller struct {
	b    *Broker
	req  Request
	lead chan bool // true: run the next turn; false: the request is done
}

// NewCaller returns a Caller for the requests of r.
func (b *Broker) NewCaller(r Request) *Caller {
	return &Caller{b: b, req: r, lead: make(chan bool, 1)}
}

// Do applies the request in a turn and returns when that turn is durable, or
// has failed.
func (c *Caller) Do() { c.do(c.b.log != nil) }

// DoNow is Do for a request that many clients share: it waits for no others.
func (c *Caller) DoNow() { c.do(false) }

// do is Do. A leader who yields lets those come along who are about to call: a
// commit costs far more than a switch. One who comes after another does not yield:
// they have had the time of its commit.
func (c *Caller) do(yield bool) {
	b := c.b
	b.mu.Lock()
	b.mu.queue = append(b.mu.queue, c)
	led := b.mu.led
	b.mu.led = true
	b.mu.Unlock()
	switch {
	case !led && yield:
		runtime.Gosched()
	case led && !<-c.lead:
		return
	}
	b.turn(c)
}

// Call applies a function in a turn, for callers that do so rarely. The error
// is that of the Commit.
func (b *Broker) Call(f func(e *engine.Engine, now int64)) error {
	r := &call{f: f}
	b.NewCaller(r).Do()
	return r.err
}

type call struct {
	f   func(e *engine.Engine, now int64)
	err error
}

func (r *call) Apply(e *engine.Engine, now int64) int64 {
	r.f(e, now)
	return now
}

func (r *call) Failed(err error) { r.err = err }

// Wake makes the broker wake w once the running turn is durable. It may be
// called only from within a turn.
func (b *Broker) Wake(w Waker) { b.woken = append(b.woken, w) }

// Close waits for the running turn, commits what has been asked for, closes the
// log and stops the timer. Nothing comes due any more, and Changes that come
// later fail with ErrClosed.
func (b *Broker) Close() error {
	err := b.Call(func(*engine.Engine, int64) {
		b.closed = true
		b.timer.Stop()
	})
	if b.log != nil {
		// In a turn of its own: that one has committed the requests beside it.
		b.Call(func(*engine.Engine, int64) {
			err = errors.Join(err, b.log.Close())
			b.log = closedLog{}
		})
	}
	return err
}

// closedLog stands in for a log that is closed.
type closedLog struct{}

func (closedLog) Append([]engine.Change) error { return ErrClosed }
func (closedLog) Commit() error                { return nil }
func (closedLog) Housekeep(int64) int64        { return engine.Never }
func (closedLog) Close() error                 { return nil }
