package conversation

import (
	"bytes"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// In the input of FuzzConversations, these bytes have special meanings. No command
// contains them.
const (
	fuzzGuest  = 0xf0 // up to fuzzGuest+2: selects the sender of the next bytes
	fuzzCut    = 0xf3 // the input so far arrives before the rest
	fuzzEnd    = 0xf4 // the client ends its input
	fuzzLeave  = 0xf5 // the connection ends
	fuzzDeaf   = 0xf6 // the client stops reading, or reads again
	fuzzFail   = 0xf7 // changes stop becoming durable, or become durable again
	fuzzSecond = 0xf8 // one second passes
	fuzzFlood  = 0xf9 // many commands
)

// For any input in any pieces, the invariants hold, and the output consists of replies.
func FuzzConversations(f *testing.F) {
	f.Add([]byte("put 0 0 1 5\r\nhello\r\nreserve\r\ndelete 1\r\nstats\r\n"))
	f.Add([]byte("reserve\r\nuse x\r\n\xf1put 0 0 1 1\r\nx\r\n\xf0delete 1\r\n"))
	f.Add([]byte("use x\r\n\xf6reserve\r\n\xf1put 0 0 1 1\r\nx\r\n\xf7bury 1 0\r\n\xf0\xf6kick 5\r\n"))
	f.Add([]byte("watch x\r\nreserve-with-timeout 1\r\n\xf8\xf8reserve\r\n\xf4\xf2put 0 0 1 9\r\n\xf3abc\xf5"))
	f.Add([]byte("\xf9\xf9quit\r\nuse x\r\n\xf1POST / HTTP/1.1\r\nput 0 0 1 1\r\n"))
	f.Add([]byte("put 0 0 1 1\r\nx\r\nput 0 9 1 1\r\ny\r\nlist-jobs default ready\r\nlist-jobs default delayed 1 0.1\r\n\xf1move-jobs default x ready\r\n\xf0\xf7flush-tube x\r\nflush-tube default delayed 1\r\n"))
	f.Add([]byte("\xfause x\r\n\xf9reserve\r\n\xf1\xfa\xf9put 0 0 1 1\r\nx\r\n\xf8\xf4\xf8\xf0\xf5\xf1\xf8\xf8"))
	f.Add([]byte("put 0 0 1 1\r\nx\r\nput 0 0 1 1\r\ny\r\nwant tube age\r\nreserve-batch 9\r\ndelete-batch 1 2 3\r\nreserve-batch 2 1\r\n\xf7\xf1put 0 0 1 1\r\nx\r\n\xf0delete-batch 3\r\nreserve-batch 2 1\r\n\xf8\xf4caps\r\n"))
	f.Add([]byte("put 0 0 1 1\r\nx\r\nreserve\r\nnote 1 why\r\nnote 1 \xc3\r\n\xf1note 1 other\r\n\xf0release 1 0 0\r\nreserve\r\nnote 1 again\r\n\xf8\xf8reserve\r\nbury 1 0\r\n"))
	f.Fuzz(func(t *testing.T, talk []byte) {
		if len(talk) > 4<<10 {
			t.Skip("longer inputs only take more time")
		}
		d := newDriver(t)
		var clients [3]*client
		at := 0
		var chunk bytes.Buffer
		flush := func() {
			if clients[at] == nil {
				clients[at] = d.connect()
			}
			if g := clients[at]; g.State() != Closed {
				if g.State() == Waiting && !g.AheadIsFull() {
					g.Receive(d.batch, d.now, chunk.Bytes())
				} else {
					g.receiveAll(chunk.Bytes())
				}
				g.check()
			}
			chunk.Reset()
		}
		for _, b := range talk {
			if b >= fuzzGuest && b != fuzzFlood {
				flush()
			}
			g := clients[at]
			switch b {
			default:
				chunk.WriteByte(b)
			case fuzzGuest, fuzzGuest + 1, fuzzGuest + 2:
				at = int(b - fuzzGuest)
			case fuzzCut:
			case fuzzEnd:
				if g.State() == Reading || g.State() == Waiting {
					g.EndInput(d.batch)
					if d.batch.Len() > 0 {
						d.turn()
					}
					g.proceed()
				}
			case fuzzLeave:
				if g.End(d.batch, errDisk); d.batch.Len() > 0 {
					d.turn()
				}
				clients[at] = nil
			case fuzzDeaf:
				g.deaf = !g.deaf
				g.proceed()
			case fuzzFail:
				if d.failing = nil; len(talk)%2 == 0 {
					d.failing = errDisk
				}
			case fuzzSecond:
				d.now += int64(time.Second)
				d.turn()
			case fuzzFlood:
				for range 300 {
					chunk.WriteString("peek-ready\r\n")
				}
			}
		}
		flush()
		for _, g := range clients {
			if g == nil {
				continue
			}
			for got := g.got.Bytes(); len(got) > 0; {
				var reply wire.Reply
				n, err := wire.ParseReply(got, &reply)
				if err != nil || n == 0 {
					t.Fatalf("not a reply: %.100q: %v", got, err)
				}
				got = got[n:]
			}
		}
	})
}
