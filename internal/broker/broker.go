// Package broker owns the engine and runs it in turns.
//
// A turn reads the clock once, fires due timers, applies all requests that have arrived,
// and passes the Changes to the Log with one write. Only a turn uses the engine, so there
// is no lock order (turn.go).
//
// A turn does not wait for the disk. It gets a position in the log, and the next turn can
// run at once. One sync makes many turns durable and settles them: their callers are
// notified and reply to their clients (commit.go). Pipelining, group commit and "no reply
// before its change is durable" follow from this.
//
//	b := broker.New(eng, broker.Options{Log: journal})
//	c := b.NewCaller(conn) // one for each connection, which is a Request
//	err := c.Do()          // calls conn.Apply in a turn; returns when that is settled
//
// An event loop must serve other connections before the turn is settled, so it uses
// steps:
//
//	if settled, err := c.Start(round); settled { // the turn is over, and durable or failed
//		reply(round, err)
//	}                  // otherwise, another goroutine calls round.Settled(err)
//	…                  // serve other ready sockets: more turns, which share the sync
//	b.Sync()           // or b.StartSync(), before the loop waits for its sockets
//
// # The goroutine of a turn
//
// A caller that arrives while no turn runs becomes the leader: it runs one turn for all
// queued requests, and passes the lead to the first caller that arrived during the turn.
// A turn in memory takes less than a microsecond, and running it in the caller's
// goroutine saves two switches (doc/decisions/0007).
//
// # The goroutine of a sync
//
// At most one sync runs at a time, for all flushed changes. A caller of Start starts it:
// Sync runs it in the caller's goroutine, like Do, and StartSync in a goroutine of the
// broker. Sync costs less; StartSync lets the caller continue while a disk is slow
// (doc/decisions/0009).
//
// # Promises
//
//  1. Requests are applied one at a time, in the order in which Do and Start
//     were called.
//  2. Changes reach the Log in the order in which they were made.
//  3. A turn is settled when all changes that it and earlier turns appended are durable, or
//     have failed to become durable. Do does not return, and no Settler is notified, before
//     that.
//  4. Turns are settled in the order in which they ran.
//  5. Events that are due at the start of a turn run before its requests.
//  6. Each request has a later time than the previous request.
//
// # Due events
//
// A timer runs a turn when an event is due. If there is too much work for one turn, the
// function passed to OnMoreDue makes an event loop run the other turns. The loop serves
// its sockets between them, so no other goroutine competes with it.
//
// The package starts goroutines for the timer and for syncs. Close ends them.
package broker

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A Request is an operation on the engine.
type Request interface {
	// Apply executes the operation. It runs within a turn, in the goroutine that leads
	// the turn, and must not block. It returns the time of its last command: now, plus a
	// nanosecond for each command after the first. So all commands have different times,
	// and the broker can count them.
	Apply(e *engine.Engine, now int64) (later int64)
}

// A Settler is notified once when a turn is settled. err is not nil if Changes of the
// turn, or of an earlier turn whose effects it can contain, could not be made durable.
// Such Changes are in memory only and must not be acknowledged.
//
// Any goroutine can call Settled, even a goroutine that leads a turn. Settled must
// neither block nor call the broker.
type Settler interface {
	Settled(err error)
}

// A Log makes changes durable: on a local disk, or in a Raft group. All methods except
// Sync are called within turns, one at a time. After an error, the Log keeps the changes
// that are not durable. It must make them durable before any later change, and refuse
// changes (engine.Options.Admit) until then. After [ErrDeposed], it drops them instead.
type Log interface {
	// Append appends changes in order. It must not keep the slice or the bodies.
	Append(changes []engine.Change) error

	// Flush passes the appended changes to the system. It returns true if they are as
	// durable as promised, because nothing was appended or no sync is promised.
	// Otherwise, Sync makes them durable. It can return false although nothing was
	// appended: then the turn waits for a Sync in which the Log confirms that the state
	// which the turn has read is still valid.
	Flush() (durable bool, err error)

	// Sync makes all changes durable that were flushed before the call. It returns an
	// error if one of them is not durable. It runs in any goroutine, one call at a time,
	// while turns run.
	Sync() error

	// Housekeep is called after Flush. It does as much of the Log's own work as fits in a
	// turn, and returns the time at which it must be called again, or engine.Never. The
	// next Flush includes its changes. After a failed Sync, another turn follows soon.
	Housekeep(now int64) (next int64)

	// Close makes all appended changes durable and frees all resources. It is not called
	// during a Sync.
	Close() error
}

// ErrDeposed is wrapped by the errors of a Log whose server is no longer the leader of
// its cluster. The Log drops the changes that are not durable. The engine contains them,
// so it is no longer valid. Until [Broker.Replace] installs another engine, no timer
// fires and all requests fail with this error. The Log returns it from each Append, Flush
// and Sync, including a Sync in progress.
var ErrDeposed = errors.New("broker: this server is no longer the leader")

// ErrClosed is the error of turns with Changes after Close.
var ErrClosed = errors.New("broker: closed")

// Options configure a Broker. The zero value means no log and the monotonic clock of the
// process.
type Options struct {
	Log Log          // nil if changes are not logged
	Now func() int64 // monotonic clock in ns; nil means the time since New

	// Wall returns the time in ns since 1970 for schedules. The time can go back. If Wall
	// is nil, the broker uses the system time.
	Wall func() int64

	// Decides reports, within a turn, whether the engine can make changes. Otherwise it
	// follows another server's engine: no timer fires in it, and requests fail with
	// ErrDeposed, except Call and View, whose functions must make no change. If Decides
	// is nil, the engine can always make changes.
	Decides func() bool

	// AwaitRoom waits while the Log cannot accept more changes. It is nil if the Log
	// always can.
	AwaitRoom func()

	// SlowTurn is called at the end of each turn that took SlowAfter or longer, except
	// the turns of Close. It runs within the turn and must not block. If it is nil, slow
	// turns are not reported.
	SlowTurn  func(Turn)
	SlowAfter time.Duration
}

// A Broker runs the turns of one engine.
type Broker struct {
	// Constant after New.
	now       func() int64
	wall      func() int64
	decides   func() bool
	awaitRoom func()
	log       Log        // nil if nothing outlives the process
	slow      func(Turn) // nil if slow turns are not reported
	slowAfter int64      // ns

	mu struct {
		sync.Mutex
		queue []*Caller // the next turn applies their requests
		led   bool      // a turn is running, or its leader is about to start it
	}

	// Owned by the turn.
	eng        *engine.Engine
	emptyQueue []*Caller // the next queue
	settlers   []Settler // Settlers of waits that ended in this turn
	timer      *time.Timer
	timerAt    int64 // time at which the timer fires, or engine.Never
	last       int64 // time at which the last request was applied
	turns      Turns
	closed     bool // timers no longer fire
	logClosed  bool

	moreDue atomic.Pointer[func()] // see OnMoreDue

	engines atomic.Uint64 // number of replacements of the engine
	deposed atomic.Bool   // set by ErrDeposed, and cleared when the engine is replaced

	commit commit // has its own lock
}

// New returns a broker, which owns the engine from then on.
func New(e *engine.Engine, opt Options) *Broker {
	b := &Broker{eng: e, log: opt.Log, now: opt.Now, wall: opt.Wall, decides: opt.Decides, awaitRoom: opt.AwaitRoom, slow: opt.SlowTurn, slowAfter: int64(opt.SlowAfter), timerAt: engine.Never}
	b.commit.idle.L = &b.commit.mu
	if b.decides == nil {
		b.decides = func() bool { return true }
	}
	if b.wall == nil {
		b.wall = func() int64 { return time.Now().UnixNano() }
	}
	if b.now == nil {
		start := time.Now()
		b.now = func() int64 { return int64(time.Since(start)) }
	}
	b.timer = time.AfterFunc(math.MaxInt64, b.tick)
	return b
}

// A Caller passes the requests of one client to the broker, one at a time. Each client
// creates one, so that Do and Start allocate nothing.
type Caller struct {
	b    *Broker
	req  Request
	next chan bool  // true: lead a turn; false: the turn is over
	done chan error // receives the error when the turn of Do is settled

	// Owned by the caller until it is in the queue, then by the turn.
	settler Settler
	settled bool  // the turn was settled at its end
	err     error // error of a settled turn
}

// NewCaller returns a Caller for the requests of r.
func (b *Broker) NewCaller(r Request) *Caller {
	return &Caller{b: b, req: r, next: make(chan bool, 1), done: make(chan error, 1)}
}

// Do applies the request in a turn and returns when that turn is settled. The error is
// the Log's; see Settler.
func (c *Caller) Do() error {
	settled, err := c.Start((*blocked)(c))
	if settled {
		return err
	}
	c.b.Sync()
	return <-c.done
}

// blocked is the Settler of Do.
type blocked Caller

func (c *blocked) Settled(err error) { c.done <- err }

// Start applies the request in a turn and returns when the turn is over. It can wait for
// other turns, but never for a sync.
//
// If settled is true, the turn and all earlier turns are settled, this turn with err, and
// their Settlers have been notified. Otherwise, the broker notifies s, which can be nil,
// at any time, and the caller must call StartSync or Sync before it waits for anything.
func (c *Caller) Start(s Settler) (settled bool, err error) {
	c.settler = s
	if c.b.enqueue(c) || <-c.next {
		c.b.turn(c)
	}
	return c.settled, c.err
}

// enqueue adds the caller to the next turn. It returns true if the caller must lead that
// turn, because no other caller does.
func (b *Broker) enqueue(c *Caller) (lead bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.queue = append(b.mu.queue, c)
	lead = !b.mu.led
	b.mu.led = true
	return lead
}

// AwaitRoom waits while the Log can accept no more changes. Callers whose requests make
// many changes must call it before Start, outside turns, so that no turn waits and View
// always works.
func (b *Broker) AwaitRoom() {
	if b.awaitRoom != nil {
		b.awaitRoom()
	}
}

// Call applies a function in a turn. It returns when the turn is settled, with the error
// of the Log. While the broker is deposed, the function is not called. Call allocates, so
// it is for rare requests.
//
// A panic in a turn ends the process, even if the caller would recover from it, as
// net/http does for handlers. Otherwise, no other turn could run.
func (b *Broker) Call(f func(e *engine.Engine, now int64)) error {
	defer crash()
	return b.NewCaller(view(f)).Do()
}

// View is Call for readers: it returns when the turn is over and does not wait for the
// disk. f can see changes that fail later, and must not make changes. While the broker is
// deposed, f is not called.
func (b *Broker) View(f func(e *engine.Engine, now int64)) { b.start(view(f)) }

// start applies a request in a turn and does not wait until the turn is settled.
func (b *Broker) start(r Request) {
	defer crash()
	if settled, _ := b.NewCaller(r).Start(nil); !settled {
		b.StartSync()
	}
}

// Configure calls f in a turn to change settings of the engine, even if the engine cannot
// make changes. Settings are not part of the queue; the next engine inherits them.
func (b *Broker) Configure(f func(e *engine.Engine)) { b.start(internal(func() { f(b.eng) })) }

// Decide calls f in a turn if the engine can make changes, and reports whether it did.
// Like View, it does not wait until the turn is settled.
func (b *Broker) Decide(f func(e *engine.Engine)) (decides bool) {
	b.start(internal(func() {
		if decides = !b.deposed.Load() && b.decides(); decides {
			f(b.eng)
		}
	}))
	return decides
}

// Replace gives the broker another engine, which the broker owns from then on. It panics
// if the old engine can still make changes: the old engine's pending changes must never
// be acknowledged.
//
// Replace first waits until all earlier turns are settled, because a Sync for the next
// engine does not cover them. Then it calls next with the old engine within a turn, so
// that the Log can change its state at the same time. From the next turn on, a deposed
// broker executes requests again.
//
// The next engine inherits the settings of the old one; see [engine.Settings]. It has no
// sessions: no request must refer to a session, and waiters of the old engine are not
// notified. next can return the old engine without its sessions. The broker keeps no
// reference to the old engine, because there might not be enough memory for two.
func (b *Broker) Replace(next func(old *engine.Engine) *engine.Engine) {
	b.callInternal(func() {})
	b.start(internal(func() { b.replace(next) }))
}

// replace implements Replace, within a turn.
func (b *Broker) replace(next func(old *engine.Engine) *engine.Engine) {
	if !b.deposed.Load() && b.decides() {
		panic("broker: Replace of an engine that can make changes")
	}
	settings := b.eng.Settings()
	b.eng = next(b.giveUp()) // next can read a journal
	b.eng.Inherit(settings)
	b.commit.mu.Lock()
	defer b.commit.mu.Unlock()
	b.engines.Add(1)
	b.deposed.Store(false)
}

// giveUp returns the engine and drops the broker's reference to it.
func (b *Broker) giveUp() *engine.Engine {
	e := b.eng
	b.eng = nil
	return e
}

// crash lets a panic end the process.
func crash() {
	if v := recover(); v != nil {
		text := fmt.Sprintf("broker: a turn has panicked: %v\n%s", v, debug.Stack())
		go panic(text)
		select {}
	}
}

// callInternal is Call for the broker's own work, which does not use the queue and runs
// even if the broker is deposed.
func (b *Broker) callInternal(f func()) error {
	defer crash()
	return b.NewCaller(internal(f)).Do()
}

type internal func()

func (f internal) Apply(_ *engine.Engine, now int64) int64 {
	f()
	return now
}

type view func(e *engine.Engine, now int64)

func (f view) Apply(e *engine.Engine, now int64) int64 {
	f(e, now)
	return now
}

// Await makes the broker notify s when the running turn is settled. It must be called
// within a turn. It is for the engine's waiters, whose waits end in another caller's
// turn.
func (b *Broker) Await(s Settler) { b.settlers = append(b.settlers, s) }

// OnMoreDue makes the broker call f at the end of each turn that left due timers for a
// later turn. f must not block. It should cause a Do or Start soon, after other clients
// were served. Otherwise, the broker runs such turns itself after a while, or at once if
// OnMoreDue was not called.
func (b *Broker) OnMoreDue(f func()) { b.moreDue.Store(&f) }

// Close waits for the running turn, settles all turns, closes the log and stops the
// timer. Later turns with Changes fail with ErrClosed.
func (b *Broker) Close() error {
	err := b.callInternal(func() {
		b.closed = true
		b.timer.Stop()
	})
	if b.log != nil {
		// Close the log in a separate turn, so that the previous turn has flushed its
		// requests.
		b.callInternal(func() { err = errors.Join(err, b.closeLog()) })
		b.commit.goroutines.Wait()
	}
	return err
}

// closeLog settles all turns and closes the log, within a turn.
func (b *Broker) closeLog() error {
	if b.logClosed {
		return nil
	}
	b.logClosed = true
	if b.commit.close() {
		b.sync()
	}
	return b.log.Close()
}
