package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/client"
)

const (
	maxDeletes = 100 // per round trip

	// The pauses after a failed reserve.
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// A fetcher reserves jobs from one server for all its slots: one for each waiting slot,
// because the times to run start at once. In the same round trip, it deletes finished
// jobs. Slots send it reports; only its own goroutine changes its fields and lines.
//
// A job belongs to its connection, and a waiting reserve blocks its connection. So
// another goroutine waits for a job on a connection that holds none. On connections that
// hold jobs, the fetcher reserves only jobs that are ready.
type fetcher struct {
	*Worker
	addr string
	ctx  context.Context // ends when the fetcher must take no more jobs
	kill context.Context // ends when it must close the connections

	reports  chan report
	reserved chan reserved
	slots    int     // number of slots that are still running
	idle     []*slot // slots that wait for a job, in order of arrival
	lines    []*line
	fetching bool // a goroutine waits for a job
	asks     int  // see limit
	pause    time.Duration
	retry    <-chan time.Time // ends the pause; nil if there is none
}

// A line is a connection with the number of its jobs in slots.
type line struct {
	*client.Conn
	batches bool        // whether the server has a command that reserves many jobs
	unwatch func() bool // ends the connection's part in fetcher.kill
	held    int         // number of jobs, including those to delete
	done    []report    // reports with jobs to delete
	retired bool        // the line has a job that was given up; closed with its last job
}

// A report is a message from a slot to its fetcher.
type report struct {
	slot   *slot
	line   *line  // line of the finished job; nil if none has finished
	delete uint64 // id of the job to delete; 0 if there is none
	retire bool   // the handler is done with the job, which is still reserved
	idle   bool   // the slot waits for the next job
}

// A task is a job and its connection.
type task struct {
	*client.Job
	line *line
}

// A reserved is the result of a waiting reserve.
type reserved struct {
	line  *line
	asked int // jobs
	jobs  []*client.Job
	err   error
}

// send sends a report. It returns false if the fetcher has stopped.
func (f *fetcher) send(r report) bool {
	select {
	case f.reports <- r:
		return true
	case <-f.kill.Done():
		return false
	}
}

// run runs until all slots have stopped or kill is canceled.
func (f *fetcher) run() {
	defer func() {
		for _, l := range f.lines {
			l.close()
		}
	}()
	stop := f.ctx.Done()
	for f.slots > 0 {
		select {
		case r := <-f.reports:
			f.hear(r)
		case r := <-f.reserved:
			f.fetched(r)
		case <-f.retry:
			f.retry = nil
		case <-stop:
			stop = nil
		case <-f.kill.Done():
			return
		}
		runtime.Gosched() // lets other finished slots share the round trip
		for len(f.reports) > 0 {
			f.hear(<-f.reports)
		}
		for _, l := range slices.Clone(f.lines) {
			f.deleteFrom(l)
		}
		switch {
		case f.fetching || len(f.idle) == 0:
		case f.ctx.Err() != nil:
			for _, s := range f.idle {
				close(s.next)
			}
			f.slots -= len(f.idle)
			f.idle = nil
		case f.retry == nil:
			f.fetch()
		}
	}
}

// hear handles a report.
func (f *fetcher) hear(r report) {
	if r.idle {
		f.idle = append(f.idle, r.slot)
	}
	switch {
	case r.line == nil:
	case r.delete != 0:
		r.line.done = append(r.line.done, r)
	default:
		r.line.retired = r.line.retired || r.retire
		f.drop(r.line)
	}
}

// drop subtracts a finished job from the line, and closes a retired line without jobs.
func (f *fetcher) drop(l *line) {
	if l.held--; l.held == 0 && l.retired {
		l.close()
		f.lines = slices.DeleteFunc(f.lines, func(o *line) bool { return o == l })
	}
}

// deleteFrom deletes the finished jobs of the line. If slots wait and no reserve does, it
// also reserves jobs that are ready.
func (f *fetcher) deleteFrom(l *line) {
	for len(l.done) > 0 {
		some := l.done[:min(len(l.done), maxDeletes)]
		l.done = l.done[len(some):]
		ids := make([]uint64, len(some))
		for i, r := range some {
			ids[i] = r.delete
		}
		deleted := func(i int, err error) {
			f.drop(l)
			some[i].slot.deleted <- err
		}
		if len(f.idle) > 0 && !f.fetching && f.retry == nil && !l.retired && f.ctx.Err() == nil {
			n := f.limit(l, len(f.idle))
			jobs, err := l.DeleteAndReserve(context.WithoutCancel(f.ctx), ids, n, deleted)
			f.fetched(reserved{l, n, jobs, err})
			continue
		}
		err := l.DeleteMany(context.WithoutCancel(f.ctx), ids)
		batch, ok := errors.AsType[*client.BatchError](err)
		for i := range ids {
			if ok {
				err = batch.Errs[i]
			}
			deleted(i, err)
		}
	}
}

// fetch starts a waiting reserve on a connection that holds no job.
func (f *fetcher) fetch() {
	f.fetching = true
	r := reserved{asked: len(f.idle)}
	if i := slices.IndexFunc(f.lines, func(l *line) bool { return l.held == 0 }); i >= 0 {
		r.line = f.lines[i]
	}
	go func() {
		if r.line == nil {
			r.line, r.err = f.dial()
		}
		if r.err == nil {
			r.asked = f.limit(r.line, r.asked)
			r.jobs, r.err = r.line.ReserveMany(f.ctx, r.asked, client.Never)
		}
		f.reserved <- r
	}()
}

// limit returns the number of jobs to request for n waiting slots. Without reserve-batch,
// each requested job costs a command, so the number grows only while all requested jobs
// are ready.
func (f *fetcher) limit(l *line, n int) int {
	if l.batches {
		return n
	}
	return min(n, f.asks+1)
}

// dial opens a connection.
func (f *fetcher) dial() (*line, error) {
	conn, err := client.Dial(f.ctx, f.addr, &f.opt.Client)
	if err != nil {
		return nil, err
	}
	l := &line{Conn: conn, unwatch: context.AfterFunc(f.kill, func() { conn.Close() })}
	var caps []string
	if err = conn.WatchOnly(f.ctx, f.opt.Tubes...); err == nil {
		caps, err = conn.Caps(f.ctx)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	l.batches = slices.Contains(caps, "reserve-batch")
	return l, nil
}

func (l *line) close() {
	l.unwatch()
	l.Close()
}

// fetched passes jobs to slots, or pauses after an error.
func (f *fetcher) fetched(r reserved) {
	f.fetching = false
	if f.asks = len(r.jobs) / 2; len(r.jobs) == r.asked {
		f.asks = 2 * r.asked
	}
	if r.line != nil {
		r.line.held += len(r.jobs)
		if !slices.Contains(f.lines, r.line) {
			f.lines = append(f.lines, r.line)
		}
	}
	switch {
	case r.err == nil:
		f.pause = 0
	case f.ctx.Err() != nil, errors.Is(r.err, client.ErrTimedOut), errors.Is(r.err, client.ErrDeadlineSoon):
	default:
		f.noJobs(r.err)
		f.pause = min(max(2*f.pause, firstPause), maxPause)
		f.retry = time.After(f.pause/2 + rand.N(f.pause/2)) // #nosec G404 -- spreads retries
	}
	for _, job := range r.jobs {
		if f.ctx.Err() != nil {
			err := job.Release(context.WithoutCancel(f.ctx), 0)
			f.hear(report{line: r.line, retire: err != nil})
			continue
		}
		f.idle[0].next <- task{job, r.line}
		f.idle = f.idle[1:]
	}
}
