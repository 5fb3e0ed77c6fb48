package broker_test

import (
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A round is what an event loop does in one turn: the commands of all sockets
// that were ready. Its replies stay with it until it is settled.
type round struct {
	name string
	loop *loop
	err  error
}

func (r *round) Apply(e *engine.Engine, now int64) (later int64) {
	s := e.Open(nil)
	e.Put(now, s, engine.Spec{}, []byte(r.name))
	e.Close(now, s)
	return now
}

// Settled comes from another goroutine: it only puts the round into the loop's
// mailbox.
func (r *round) Settled(err error) {
	r.err = err
	r.loop.mail <- r
}

func (r *round) reply() { fmt.Println(r.name, r.err) }

type loop struct {
	caller *broker.Caller
	now    *round // that the next turn is for
	mail   chan *round
}

func (l *loop) Apply(e *engine.Engine, now int64) (later int64) { return l.now.Apply(e, now) }

// An event loop starts a turn for each round, goes on with the next, and asks
// for a sync before it waits. Rounds are settled in their order.
func Example_eventLoop() {
	b := broker.New(engine.New(engine.Options{Logged: true}), broker.Options{Log: newMemoryLog()})
	defer b.Close()
	l := &loop{mail: make(chan *round, 8)}
	l.caller = b.NewCaller(l)

	for _, name := range []string{"first", "second", "third"} { // as long as sockets are ready
		l.now = &round{name: name, loop: l}
		if settled, err := l.caller.Start(l.now); settled {
			l.now.err = err
			l.now.reply() // those before it are in the mailbox: they come first
		}
	}
	b.StartSync()
	for range 3 { // as long as there is mail; a loop waits for sockets and mail at once
		(<-l.mail).reply()
	}
	// Output:
	// first <nil>
	// second <nil>
	// third <nil>
}

// A memoryLog forgets everything, and has a sync that does nothing.
type memoryLog struct{ appended int }

func newMemoryLog() *memoryLog { return &memoryLog{} }

func (l *memoryLog) Append(changes []engine.Change) error {
	l.appended += len(changes)
	return nil
}

func (l *memoryLog) Flush() (durable bool, err error) {
	durable = l.appended == 0
	l.appended = 0
	return durable, nil
}

func (l *memoryLog) Sync() error           { return nil }
func (l *memoryLog) Housekeep(int64) int64 { return engine.Never }
func (l *memoryLog) Close() error          { return nil }
