package server

import (
	"fmt"
	"io"
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
