package server

import (
	"testing"
	"testing/synctest"
	"time"
)

// Loops do not disconnect clients that send input while the process stands still.
func TestStandstillOfLoop(t *testing.T) {
	for name, s := range standstill {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				opt := s.opt
				opt.Loops = 1
				r := start(t, opt)
				n := new(kernel)
				c := r.dialKernel(n)
				c.send(s.before)
				stood := false
				n.BeforeWait = func(timeout time.Duration) {
					if total, _ := n.Counts(); timeout > 0 && total.Reads > 0 && !stood {
						stood = true
						time.Sleep(2 * timeout)
						c.send(s.while)
					}
				}
				r.serve(n)
				c.line("USING y")
				if !stood {
					t.Error("the process did not stand still")
				}
			})
		})
	}
}

// A client that is working does not close its connection, and its kernel can delay the
// acknowledgment of a reply by about 40 ms. The server does not wait longer.
func TestShutdownDoesNotWaitForClientsAtWork(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, Options{Loops: 1})
		n := new(kernel)
		c := r.dialKernel(n)
		c.send("use x\n")
		r.serve(n)
		synctest.Wait()
		go func() {
			time.Sleep(40 * time.Millisecond)
			c.want("USING x\n")
		}()
		begun := time.Now() // time in the bubble
		if err := r.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < 40*time.Millisecond || took > 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}
