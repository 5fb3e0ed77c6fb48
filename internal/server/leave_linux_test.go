package server

import (
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// If very many clients disconnect at once, other clients are served in between, because
// each iteration closes only some connections. All are closed in the end, even without
// further events.
func TestManyClientsLeave(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const clients = 200
		r := start(t, Options{Loops: 1})
		n := new(kernel)
		ends := make([]net.Conn, clients)
		for i := range ends {
			ends[i], _ = n.Dial()
		}
		leave := sync.OnceFunc(func() {
			for _, nc := range ends {
				nc.Close()
			}
		})
		n.BeforeWait = func(time.Duration) {
			if n.Waiting() == 0 { // all clients have connected
				leave()
			}
		}
		r.serve(n)
		synctest.Wait()
		total, most := n.Counts()
		if total.Closes != clients {
			t.Errorf("%d connections were closed, want %d", total.Closes, clients)
		}
		if most.Closes > epoll.MaxEvents/maxBatchTasks*closesPerBatch {
			t.Errorf("%d connections were closed in one iteration", most.Closes)
		}
	})
}
