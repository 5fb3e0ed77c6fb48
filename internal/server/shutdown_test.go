package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/memnet"
)

// Shutdown lets connections complete the commands that they have started, closes idle and
// waiting connections, and returns when all are closed.
func TestShutdown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, Options{})
		idle, waiting, half, reading := r.dial(), r.dial(), r.dial(), r.dial()
		idle.do("use x\n", "USING x\n")
		waiting.send("reserve\n")
		half.send("put 0 0 9 100\nhello")
		// Its replies do not fit into the buffers between client and server.
		const size = 60_000
		reading.do(fmt.Sprintf("use x\nput 0 0 9 %d\n%s\n", size, strings.Repeat("x", size)), "USING x\nINSERTED 1\n")
		reading.send(strings.Repeat("peek 1\n", 100))
		synctest.Wait()

		ended := make(chan error)
		go func() { ended <- r.Shutdown(t.Context()) }()
		for _, c := range []*client{idle, waiting, half} {
			c.wantEnd()
		}
		synctest.Wait()
		r.wantConns(1)
		if _, err := r.pipe(); err == nil {
			t.Error("a connection was accepted after Shutdown")
		}
		for range 100 {
			reading.want(fmt.Sprintf("FOUND 1 %d\n%s\n", size, strings.Repeat("x", size)))
		}
		reading.wantEnd()
		if err := <-ended; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if st := r.stats(); st.Sessions != 0 || st.Waiting != 0 || st.Ready != 1 {
			t.Errorf("afterwards: %+v", st)
		}
	})
}

// Shutdown closes the remaining connections when its context is done.
func TestShutdownInTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, Options{})
		c := r.dial()
		c.do("put 0 0 9 1000\n"+strings.Repeat("x", 1000)+"\n", "INSERTED 1\n")
		go io.WriteString(c.nc, strings.Repeat("peek 1\r\n", 10_000))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begun := time.Now()
		if err := r.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown: %v", err)
		}
		if d := time.Since(begun); d != 5*time.Second {
			t.Errorf("it took %v", d)
		}
		r.wantConns(0)
	})
}

// After Shutdown, Serve returns at once. A connection that is just being accepted is
// closed, and it is not counted as exceeding the limit.
func TestServeAfterShutdown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, Options{})
		if err := r.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		l := memnet.Listen()
		if err := r.Serve(l, ListenOptions{}); err != nil {
			t.Errorf("Serve: %v", err)
		}
		if _, err := l.Dial(); err == nil {
			t.Error("the listener was not closed")
		}
		client, late := memnet.Pipe()
		(&acceptor{srv: r.Server}).acceptConn(late)
		newClient(t, client).wantEnd()
	})
}

// If a listener is closed by other code, its Serve returns an error, and other listeners
// continue.
func TestListenerCloses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, Options{})
		l := memnet.Listen()
		served := make(chan error)
		go func() { served <- r.Serve(l, ListenOptions{}) }()
		synctest.Wait()
		l.Close()
		if err := <-served; err == nil {
			t.Error("Serve returned nil without a Shutdown")
		}
		r.dial().do("use x\n", "USING x\n")
	})
}

// Servers start and stop repeatedly while clients connect, work and disconnect. The test
// checks for hangs and leaks.
func TestStartStopStorm(t *testing.T) {
	t.Parallel()
	for range 20 {
		bubble(t, func(t *testing.T) {
			r := start(t, Options{})
			var clients sync.WaitGroup
			for i := range 30 {
				clients.Go(func() {
					for {
						nc, err := r.pipe()
						if err != nil {
							return // the server has stopped
						}
						go io.Copy(io.Discard, nc)
						io.WriteString(nc, "put 0 0 9 1\r\nx\r\nreserve\r\n")
						if i%3 > 0 {
							io.WriteString(nc, "reserve\r\nput 0 0 9 100\r\n")
						}
						time.Sleep(time.Duration(i+1) * time.Microsecond)
						nc.Close()
					}
				})
			}
			time.Sleep(100 * time.Microsecond)
			if err := r.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			clients.Wait()
			r.wantConns(0)
			if st := r.stats(); st.Sessions != 0 {
				t.Errorf("%d sessions are left", st.Sessions)
			}
		})
	}
}
