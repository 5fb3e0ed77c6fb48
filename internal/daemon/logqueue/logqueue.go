// Package logqueue keeps lines of the log until the reader of the log has taken them, so
// that whoever logs does not wait for that reader. Lines for which there is no room are
// dropped and counted, and the log says how many they were when it is read again.
//
// A goroutine writes the lines. It is started by the first one and ends when it has
// written all.
package logqueue

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	// maxWaiting is how many bytes may wait while as many are being written.
	maxWaiting = 1 << 20

	// maxWrite is how many bytes are written at once, unless a line is longer: what Linux
	// and others write to a pipe in one piece, so that no line of another process is in it.
	maxWrite = 4096
)

// A Queue writes lines to an [io.Writer] without waiting for it.
type Queue struct {
	// Dropped is called when the writer takes lines again after so many were dropped. It may
	// write to the Queue. It is set before the first line is written.
	Dropped func(lines int)

	out io.Writer

	mu      sync.Mutex
	waiting []byte
	lost    int           // lines that were dropped, and not told of
	idle    chan struct{} // closed when the goroutine ends; nil: it does not run
}

// New returns a Queue that writes to out.
func New(out io.Writer) *Queue { return &Queue{out: out} }

// Write implements io.Writer for one or more whole lines. It never waits and never fails.
func (q *Queue) Write(lines []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= maxWaiting {
		q.lost += bytes.Count(lines, []byte("\n"))
		return len(lines), nil
	}
	q.waiting = append(q.waiting, lines...)
	if q.idle == nil {
		q.idle = make(chan struct{})
		go q.run()
	}
	return len(lines), nil
}

// Flush returns when all lines are written, or after a time.
func (q *Queue) Flush(timeout time.Duration) {
	q.mu.Lock()
	idle := q.idle
	q.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-time.After(timeout):
	}
}

// run writes until nothing waits.
func (q *Queue) run() {
	var batch []byte
	for taken := false; ; { // whether the last write succeeded: only then is there somebody to tell
		var lost int
		q.mu.Lock()
		if taken {
			lost, q.lost = q.lost, 0
		}
		if len(q.waiting) == 0 && lost == 0 {
			close(q.idle)
			q.idle = nil
			q.mu.Unlock()
			return
		}
		batch, q.waiting = q.waiting, batch[:0]
		q.mu.Unlock()
		if lost > 0 {
			q.Dropped(lost) // after the lines that came before those, which are in batch
		}
		unwritten := q.write(batch)
		if taken = unwritten == 0; !taken {
			q.mu.Lock()
			q.lost += unwritten
			q.mu.Unlock()
		}
	}
}

// write writes lines, and returns how many of them it could not write.
func (q *Queue) write(lines []byte) (lost int) {
	for len(lines) > 0 {
		n := bytes.LastIndexByte(lines[:min(len(lines), maxWrite)], '\n') + 1
		if n == 0 {
			n = bytes.IndexByte(lines, '\n') + 1
		}
		if _, err := q.out.Write(lines[:n]); err != nil {
			return bytes.Count(lines, []byte("\n"))
		}
		lines = lines[n:]
	}
	return 0
}
