package broker

import (
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine/histogram"
)

// Turns counts a broker's turns.
type Turns struct {
	Length   histogram.Histogram // ns
	Commands histogram.Histogram // number of commands per turn, including requests of connections, timers and managers
}

// Turns returns the broker's counters. Read or copy them within a turn.
func (b *Broker) Turns() *Turns { return &b.turns }

// A Turn describes a slow turn.
type Turn struct {
	Took     time.Duration
	Requests int // number of requests: of one connection, or of all connections that a loop found ready
	Commands int // number of commands, as in Turns

	// The parts of Took.
	Executing    time.Duration // time for due events and commands
	Writing      time.Duration // time for writing to the log; 0 without a log
	Housekeeping time.Duration // time for the log's own work, mostly compaction
}

// A stopwatch measures the parts of a turn. Without a log, it reads the clock only at the
// start and the end, because most such turns take no longer than a few readings.
type stopwatch struct {
	requests                 int
	began, executed, flushed int64 // ns
}

// lap reads the clock, if there is a log.
func (b *Broker) lap() (now int64) {
	if b.log != nil {
		now = b.now()
	}
	return now
}

// measureTurn counts a turn, and reports it if it was slow.
func (b *Broker) measureTurn(w *stopwatch, commands int64) {
	end := b.now()
	b.turns.Length.Record(end - w.began)
	b.turns.Commands.Record(commands)
	if b.slow == nil || end-w.began < b.slowAfter || b.closed { // no client waits for the turns of Close
		return
	}
	t := Turn{Took: time.Duration(end - w.began), Requests: w.requests, Commands: int(commands)}
	t.Executing = t.Took
	if b.log != nil {
		t.Executing = time.Duration(w.executed - w.began)
		t.Writing = time.Duration(w.flushed - w.executed)
		t.Housekeeping = time.Duration(end - w.flushed)
	}
	b.slow(t)
}
