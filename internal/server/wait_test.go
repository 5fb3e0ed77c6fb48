package server

import (
	"testing"
	"time"
)

// The reply to a reserve is delivered even after a long wait. The stall timeout starts
// when there is a reply.
func TestWaitLongerThanStallTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, Options{IdleTimeout: time.Minute, StallTimeout: time.Second})
		worker := r.dial()
		worker.do("use x\n", "USING x\n") // this reply sets the deadline
		worker.send("reserve\n")
		time.Sleep(24 * time.Hour)
		r.dial().do("put 0 0 9 5\nhello\n", "INSERTED 1\n")
		worker.want("RESERVED 1 5\nhello\n")
		worker.do("delete 1\n", "DELETED\n")
	})
}
