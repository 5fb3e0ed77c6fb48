package main

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

const (
	bodySize = 64   // bytes
	ttr      = 3600 // seconds; longer than any run
)

// A queue is a server without sockets.
type queue struct {
	*broker.Broker
	dir string       // directory of the journal
	now atomic.Int64 // in ns; advanced explicitly, and read by the broker's timer
	id  uint64       // id of the last job put
}

// newQueue returns a queue whose journal has segments of segmentSize bytes, or a queue in
// memory if segmentSize is 0.
func newQueue(dir string, segmentSize int64) *queue {
	q := &queue{dir: dir, id: firstID}
	opt := broker.Options{Now: q.now.Load}
	e := engine.New(engine.Options{})
	if segmentSize > 0 {
		opt.Log, e = open(dir, segmentSize)
	}
	e.Restore(engine.Change{Kind: engine.LastID, ID: q.id})
	q.Broker = broker.New(e, opt)
	return q
}

// open opens the journal in a directory. It leaves syncs to the system, because they cost
// time but no instructions.
func open(dir string, segmentSize int64) (*journal.Journal, *engine.Engine) {
	j := journal.New(journal.Options{Sync: -1, SegmentSize: segmentSize, Epoch: int64(time.Hour)})
	e := engine.New(engine.Options{Logged: true, Admit: j.Admit})
	_, err := j.Open(vfs.OS, dir, e)
	must(err)
	return j, e
}

// fill puts jobs with different bodies. The function tube returns the tube of each job.
// The turns are no larger than a client's turns.
func (q *queue) fill(jobs int, spec engine.Spec, tube func(i int) string) {
	const turn = 100
	spec.TTR = ttr
	body := make([]byte, bodySize)
	var s *engine.Session
	must(q.Call(func(e *engine.Engine, _ int64) { s = e.Open(nil) }))
	for from := 0; from < jobs; from += turn {
		must(q.Call(func(e *engine.Engine, now int64) {
			for i := from; i < min(from+turn, jobs); i++ {
				e.Use(s, []byte(tube(i)))
				binary.LittleEndian.PutUint32(body, uint32(i)+1)
				_, o := e.Put(now, s, spec, body)
				mustOK(o)
				q.id++
			}
		}))
	}
	must(q.Call(func(e *engine.Engine, now int64) { e.Close(now, s) }))
}

func inDefault(int) string { return engine.DefaultTube }

// pass advances the clock.
func (q *queue) pass(d time.Duration) { q.now.Add(int64(d)) }
