package broker_test

import (
	"fmt"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A round contains the commands of all ready sockets of an event loop in one turn. It
// holds its replies until it is settled.
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

// Settled is called by another goroutine, so it only puts the round into the loop's
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

// An event loop starts a turn for each round, continues with the next, and asks for a
// sync before it waits. Rounds are settled in order.
func Example_eventLoop() {
	b := broker.New(engine.New(engine.Options{Logged: true}), broker.Options{Log: newMemoryLog()})
	defer b.Close()
	l := &loop{mail: make(chan *round, 8)}
	l.caller = b.NewCaller(l)

	for _, name := range []string{"first", "second", "third"} { // as long as sockets are ready
		l.now = &round{name: name, loop: l}
		if settled, err := l.caller.Start(l.now); settled {
			l.now.err = err
			l.now.reply() // earlier rounds in the mailbox come first
		}
	}
	b.StartSync()
	for range 3 { // while there is mail; a real loop waits for sockets and mail at the same time
		(<-l.mail).reply()
	}
	// Output:
	// first <nil>
	// second <nil>
	// third <nil>
}

// A memoryLog discards all changes. Its sync does nothing.
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
