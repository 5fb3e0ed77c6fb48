// Package asynclog buffers lines of the log, so that a goroutine that logs does not wait
// for a slow reader of the log. If the buffer is full, lines are dropped. Their number is
// logged when the log can be written again.
//
// A goroutine writes the lines. The first line starts it, and it ends when the buffer is
// empty.
package asynclog

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// maxWaiting is the maximum number of bytes in the queue. The same number of bytes can be
// in progress.
const maxWaiting = 1 << 20

// A Queue writes lines to an [io.Writer] without waiting for it.
type Queue struct {
	// Dropped is called with the number of dropped lines when the writer accepts lines
	// again. It can write to the Queue. Set it before the first Write.
	Dropped func(lines int)

	out io.Writer

	mu      sync.Mutex
	waiting []byte
	lost    int           // dropped lines that were not reported to Dropped yet
	idle    chan struct{} // closed when the goroutine ends; nil if it is not running
}

// New returns a Queue that writes to out.
func New(out io.Writer) *Queue { return &Queue{out: out} }

// Write implements io.Writer for one or more complete lines. It never blocks and never
// fails.
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

// Flush returns when all lines are written, or after the timeout.
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

// run writes until the queue is empty.
func (q *Queue) run() {
	var batch []byte
	for taken := false; ; { // true if the last write succeeded; before that, a report would be dropped too
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
			q.Dropped(lost) // after the lines that precede the dropped ones, which are in batch
		}
		n, err := q.out.Write(batch)
		if taken = err == nil; !taken {
			q.mu.Lock()
			q.lost += bytes.Count(batch[n:], []byte("\n"))
			q.mu.Unlock()
		}
	}
}
