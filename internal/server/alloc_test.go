package server

import (
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// In the steady state, put, reserve and delete allocate nothing, neither singly nor
// pipelined, even if the worker waits for the job.
func TestAllocations(t *testing.T) {
	if seeds.Race {
		t.Skip("the race detector allocates")
	}
	for network, dial := range map[string]func(*testing.T, *rig) *client{
		"memory":   func(_ *testing.T, r *rig) *client { return r.dial() },
		"loopback": func(_ *testing.T, r *rig) *client { return r.dialTCP() },
	} {
		t.Run(network, func(t *testing.T) {
			r := start(t, Options{})
			producer, worker := dial(t, r), dial(t, r)
			body := make([]byte, 64)
			id := uint64(0)
			out, in := make([]byte, 0, 64<<10), make([]byte, 64<<10)
			// exchange sends the contents of out and reads replies of the given number of
			// bytes.
			exchange := func(c *client, replies int) {
				c.nc.Write(out)
				out = out[:0]
				if _, err := io.ReadFull(c.nc, in[:replies]); err != nil {
					t.Error(err)
				}
			}
			digits := func() int { return len(strconv.AppendUint(in[:0], id, 10)) }
			var look waitingLook
			looker := r.broker.NewCaller(&look)
			check := func(name string, budget float64, f func()) {
				t.Helper()
				for range 200 { // until buffers and pools stop growing
					f()
				}
				if n := testing.AllocsPerRun(1000, f); n > budget {
					t.Errorf("%s: %v allocations, want at most %v", name, n, budget)
				}
			}
			lenReserved := func() int { return len("RESERVED  64\r\n") + digits() + 64 + 2 }
			check("one by one", 0, func() {
				id++
				out = wire.AppendCommand(out, &wire.Command{Op: wire.Put, TTR: 60, Body: body})
				exchange(producer, len("INSERTED \r\n")+digits())
				out = wire.AppendCommand(out, &wire.Command{Op: wire.Reserve})
				exchange(worker, lenReserved())
				out = wire.AppendCommand(out, &wire.Command{Op: wire.Delete, ID: id})
				exchange(worker, len("DELETED\r\n"))
			})
			check("pipelined", 0, func() {
				want := 0
				for range 20 {
					id++
					out = wire.AppendCommand(out, &wire.Command{Op: wire.Put, TTR: 60, Body: body})
					out = wire.AppendCommand(out, &wire.Command{Op: wire.Reserve})
					out = wire.AppendCommand(out, &wire.Command{Op: wire.Delete, ID: id})
					want += len("INSERTED \r\nDELETED\r\n") + digits() + lenReserved()
				}
				exchange(producer, want)
			})
			check("waiting", 0, func() {
				id++
				out = wire.AppendCommand(out, &wire.Command{Op: wire.Reserve})
				exchange(worker, 0)
				for look = 0; look == 0; looker.Do() {
					time.Sleep(time.Microsecond) // lets the runtime poll the sockets
				}
				out = wire.AppendCommand(out, &wire.Command{Op: wire.Put, TTR: 60, Body: body})
				exchange(producer, len("INSERTED \r\n")+digits())
				exchange(worker, lenReserved())
				out = wire.AppendCommand(out, &wire.Command{Op: wire.Delete, ID: id})
				exchange(worker, len("DELETED\r\n"))
			})
		})
	}
}

// waitingLook is a request that reads the number of waiting sessions.
type waitingLook uint64

func (l *waitingLook) Apply(e *engine.Engine, now int64) int64 {
	*l = waitingLook(e.Stats().Waiting)
	return now
}
