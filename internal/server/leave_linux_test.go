package server

import (
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// When very many clients leave at once, others are served in between: only some are closed in
// each pass. All are in the end, though nothing else happens any more.
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
			if n.Waiting() == 0 { // all have connected
				leave()
			}
		}
		r.serve(n)
		synctest.Wait()
		total, most := n.Counts()
		if total.Closes != clients {
			t.Errorf("%d connections were closed, want %d", total.Closes, clients)
		}
		if most.Closes > epoll.MaxEvents/maxRoundTasks*closesPerRound {
			t.Errorf("%d connections were closed in one pass", most.Closes)
		}
		if most.Reads > leavesPerPass {
			t.Errorf("%d connections were read in one pass", most.Reads)
		}
	})
}
