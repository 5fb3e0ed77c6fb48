package server

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/conversation"
)

// The answer of a reserve gets out however long it took: the time that a
// client has for its replies begins when there is one.
func TestWaitLongerThanStallTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, Options{IdleTimeout: time.Minute, StallTimeout: time.Second})
		worker := r.dial()
		worker.do("use x\n", "USING x\n") // sets the deadline for this reply
		worker.send("reserve\n")
		time.Sleep(24 * time.Hour)
		r.dial().do("put 0 0 9 5\nhello\n", "INSERTED 1\n")
		worker.want("RESERVED 1 5\nhello\n")
		worker.do("delete 1\n", "DELETED\n")
	})
}

// A job may come while the worker's replies to earlier commands are still being
// written, or at any other moment. None of the bytes is lost or out of place.
func TestAnswerAtAnyMoment(t *testing.T) {
	const jobs = 2000
	r := start(t, Options{})
	worker, producer := r.dial(), r.dial()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for i := range jobs {
			producer.do(fmt.Sprintf("put 0 0 9 4\n%04d\n", i), fmt.Sprintf("INSERTED %d\n", i+1))
		}
	})
	worker.send("reserve\n")
	for i := range jobs {
		worker.want(fmt.Sprintf("RESERVED %d 4\n%04d\n", i+1, i))
		worker.send(fmt.Sprintf("delete %d\nreserve\n", i+1))
		worker.want("DELETED\n")
	}
}

// Who hangs up or half-closes while waiting waits no longer, and what was sent
// after the reserve is executed.
func TestHangUpWhileWaiting(t *testing.T) {
	for name, after := range map[string]string{
		"nothing after":   "",
		"a command after": "put 0 0 9 1\nx\n",
		"half a command":  "put 0 0 9 100\nx",
		"almost too much": strings.Repeat("list-tube-used\n", conversation.MaxAhead/16-1),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, Options{})
				halfClosed, closed := r.dial(), r.dial()
				for _, c := range []*client{halfClosed, closed} {
					c.send("watch empty\nignore default\nreserve\n" + after)
					c.want("WATCHING 2\nWATCHING 1\n")
				}
				synctest.Wait()
				if st := r.stats(); st.Waiting != 2 {
					t.Fatalf("%d wait, want 2", st.Waiting)
				}
				halfClosed.halfClose()
				synctest.Wait()
				closed.nc.Close()
				synctest.Wait()
				st := r.stats()
				if st.Waiting != 0 || st.Sessions != 0 {
					t.Errorf("%d sessions are left, %d wait", st.Sessions, st.Waiting)
				}
				halfClosed.want("TIMED_OUT\n")
				switch {
				case strings.HasSuffix(after, "x\n"):
					halfClosed.want("INSERTED 1\n")
					if st.TotalJobs < 1 {
						t.Error("the client that can still read has put no job")
					}
				case strings.HasPrefix(after, "list"):
					halfClosed.want(strings.Repeat("USING default\n", conversation.MaxAhead/16-1))
				}
				halfClosed.wantEnd()
			})
		})
	}
}
