package server

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// BenchmarkPutReserveDelete is one client that puts a job, reserves it and
// deletes it; pipeline is how many of these it has under way. An op is the three
// commands, the client's part included.
func BenchmarkPutReserveDelete(b *testing.B) {
	body := make([]byte, 64)
	for network, dial := range map[string]func(*rig) *client{"memory": (*rig).dial, "loopback": (*rig).dialTCP} {
		for _, pipeline := range []int{1, 16} {
			b.Run(fmt.Sprintf("net=%s/pipeline=%d", network, pipeline), func(b *testing.B) {
				b.ReportAllocs()
				c := dial(start(b, Options{}))
				out, in := make([]byte, 0, 64<<10), make([]byte, 0, 64<<10)
				id := uint64(0)
				for done := 0; done < b.N; {
					out, in = out[:0], in[:0]
					for range min(pipeline, b.N-done) {
						id++
						done++
						out = wire.AppendPut(out, 0, 0, 60, body)
						out = wire.AppendReserve(out)
						out = wire.AppendDelete(out, id)
						in = wire.AppendInserted(in, id)
						in = wire.AppendReserved(in, id, body)
						in = wire.AppendWord(in, wire.Deleted)
					}
					c.nc.Write(out)
					if _, err := io.ReadFull(c.nc, in); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkConnect is clients that connect, give one command, and hang up. An op is
// all of that, the client's part included.
func BenchmarkConnect(b *testing.B) {
	for _, clients := range []int{1, 32} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			r := start(b, Options{})
			l := r.listenTCP()
			r.serve(l)
			var done atomic.Int64
			var all sync.WaitGroup
			for range clients {
				all.Go(func() {
					for done.Add(1) <= int64(b.N) {
						if err := visit(l.Addr()); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
		})
	}
}

// visit connects, gives a command, and hangs up, with a reset: so that no port is
// kept busy.
func visit(addr net.Addr) error {
	nc, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		return err
	}
	defer nc.Close()
	nc.(*net.TCPConn).SetLinger(0)
	if _, err := io.WriteString(nc, "list-tube-used\r\n"); err != nil {
		return err
	}
	_, err = io.ReadFull(nc, make([]byte, len("USING default\r\n")))
	return err
}
