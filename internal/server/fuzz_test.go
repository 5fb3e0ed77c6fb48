package server

import (
	"bytes"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/test/memnet"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A talk is what fuzzClients send: bytes for the current connection, save those
// that stand for something else. They occur in no command.
const (
	talkConn0 = 0xf0 // to talkConn0+3: the connection that the next bytes go to
	talkCut   = 0xf4 // what was sent so far arrives before the rest
	talkHalf  = 0xf5 // half-close
	talkClose = 0xf6 // close; the next bytes go to a new connection
	talkTick  = 0xf7 // a second passes
	talkHour  = 0xf8 // an hour passes
	talkMuch  = 0xf9 // 1000 bytes of x
	talkFlood = 0xfa // 1000 times the same command
	talkDrain = 0xfb // the server takes no puts any more
)

// Whatever clients send, in whatever pieces: the server does not panic or hang,
// what it answers are replies, and afterwards the engine is sound.
func FuzzConn(f *testing.F) {
	f.Add([]byte("put 0 0 1 5\r\nhello\r\nreserve\r\ndelete 1\r\nstats\r\n"))
	f.Fuzz(func(t *testing.T, talk []byte) {
		if len(talk) > 4<<10 {
			t.Skip("long ones only take their time")
		}
		bubble(t, func(t *testing.T) {
			r := start(t, Options{MaxJobSize: 3000, IdleTimeout: 10 * time.Hour})
			var clients [4]*fuzzClient
			at := 0
			var chunk bytes.Buffer
			flush := func() {
				if chunk.Len() == 0 {
					return
				}
				if clients[at] == nil {
					clients[at] = newFuzzClient(t, r)
				}
				clients[at].nc.Write(chunk.Bytes()) // it may be closed
				chunk.Reset()
				synctest.Wait()
			}
			for _, b := range talk {
				if b >= talkConn0 && b != talkMuch && b != talkFlood {
					flush()
				}
				switch b {
				default:
					chunk.WriteByte(b)
				case talkConn0, talkConn0 + 1, talkConn0 + 2, talkConn0 + 3:
					at = int(b - talkConn0)
				case talkCut:
				case talkHalf:
					if c := clients[at]; c != nil {
						c.nc.CloseWrite()
						clients[at] = nil
					}
				case talkClose:
					if c := clients[at]; c != nil {
						c.nc.Close()
						clients[at] = nil
					}
				case talkTick:
					time.Sleep(time.Second)
				case talkHour:
					time.Sleep(time.Hour)
				case talkMuch:
					chunk.Write(bytes.Repeat([]byte("x"), 1000))
				case talkFlood:
					chunk.Write(bytes.Repeat([]byte("peek-ready\r\n"), 1000))
				case talkDrain:
					r.Drain()
				}
			}
			flush()
		})
	})
}

// A fuzzClient reads all the replies that it gets.
type fuzzClient struct{ nc *memnet.Conn }

func newFuzzClient(t *testing.T, r *rig) *fuzzClient {
	nc, err := r.pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &fuzzClient{nc.(*memnet.Conn)}
	var reads sync.WaitGroup
	reads.Go(func() {
		got, _ := io.ReadAll(c.nc)
		for len(got) > 0 {
			var reply wire.Reply
			n, err := wire.ParseReply(got, &reply)
			if err != nil {
				t.Errorf("not a reply: %.100q: %v", got, err)
			}
			if n == 0 || err != nil {
				return // the connection was closed while the server wrote
			}
			got = got[n:]
		}
	})
	t.Cleanup(func() {
		c.nc.Close()
		reads.Wait()
	})
	return c
}
