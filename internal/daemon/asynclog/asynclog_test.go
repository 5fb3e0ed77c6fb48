package asynclog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A reader reads lines unless it is stuck.
type reader struct {
	stuck chan struct{} // a write waits until it is closed
	fails error
	taken bytes.Buffer
}

func (r *reader) Write(lines []byte) (int, error) {
	<-r.stuck
	if r.fails != nil {
		return 0, r.fails
	}
	return r.taken.Write(lines)
}

func newQueue(r *reader) (q *Queue) {
	q = New(r)
	q.Dropped = func(lines int) { fmt.Fprintf(q, "dropped %d\n", lines) }
	return q
}

// Logging does not wait for a stuck reader. A line with the number of lost lines replaces
// them.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{stuck: make(chan struct{})}
		q := newQueue(r)
		line := strings.Repeat("x", 99) + "\n"
		fmt.Fprint(q, "first\n")
		synctest.Wait() // until it is being written
		const lines = 3 * maxWaiting / 100
		for range lines {
			fmt.Fprint(q, line)
		}
		q.Flush(time.Second)
		if r.taken.Len() > 0 {
			t.Fatal("a stuck reader received lines")
		}
		close(r.stuck)
		synctest.Wait()
		fmt.Fprint(q, "last\n")
		q.Flush(time.Second)
		got := r.taken.String()
		kept := strings.Count(got, line)
		want := "first\n" + strings.Repeat(line, kept) + fmt.Sprintf("dropped %d\n", lines-kept) + "last\n"
		if got != want || kept < maxWaiting/100 || kept == lines {
			t.Errorf("%d of %d lines, ending with %q", kept, lines, got[max(0, len(got)-50):])
		}
	})
}

// If the reader fails, the notice about lost lines follows when the reader accepts a line
// again.
func TestFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{stuck: make(chan struct{}), fails: errors.New("no space left on device")}
		close(r.stuck)
		q := newQueue(r)
		for range 3 {
			fmt.Fprint(q, "lost\n")
			synctest.Wait()
		}
		r.fails = nil
		fmt.Fprint(q, "a\n")
		q.Flush(time.Second)
		if got := r.taken.String(); got != "a\ndropped 3\n" {
			t.Errorf("read %q", got)
		}
	})
}
