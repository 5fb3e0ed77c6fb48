package conversation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// If all buffers together exceed the limit, the conversation with the largest buffers is
// closed first, regardless of their contents and of its progress.
func TestMemoryIsBounded(t *testing.T) {
	d := newDriver(t)
	d.shared.Memory.Max = 800_000
	begin := func(size int) *client {
		g := d.connect()
		g.send(fmt.Sprintf("put 0 0 9 %d\n%s", 2*size, strings.Repeat("x", size)))
		d.now++
		return g
	}
	idle, waits := d.connect(), d.connect()
	idle.send("use x\n")
	waits.send("reserve\n" + strings.Repeat("use x\n", 1000)) // a typical client with a long wait
	small, large, middle := begin(50_000), begin(120_000), begin(90_000)
	if len(d.dismissed) > 0 {
		t.Fatalf("%d connections were dismissed below the limit", len(d.dismissed))
	}
	last := begin(90_000)
	if !slices.Equal(d.dismissed, []*client{large}) {
		t.Fatalf("%d connections were dismissed, want the one with the largest buffers", len(d.dismissed))
	}
	if held := d.shared.Memory.Held(); held > d.shared.Memory.Max {
		t.Errorf("%d bytes are held, want %d at most", held, d.shared.Memory.Max)
	}
	for _, g := range []*client{idle, waits, small, large, middle, last} {
		g.end()
	}
	if held := d.shared.Memory.Held(); held != 0 {
		t.Errorf("%d bytes are held after the end of all conversations", held)
	}
}

// An unread list of names counts, although it is formatted while it is read. A large body
// also counts.
func TestUnreadRepliesCount(t *testing.T) {
	d := newDriver(t)
	s := d.eng.Open(nil)
	for i := range 20_000 {
		d.eng.Watch(s, fmt.Appendf(nil, "tube-%d", i))
	}
	producer, lists, peeks := d.connect(), d.connect(), d.connect()
	producer.send(fmt.Sprintf("put 0 0 9 %d\n%s\n", 200_000, strings.Repeat("x", 200_000)))
	for g, c := range map[*client]struct {
		command string
		bytes   int64
	}{lists: {"list-tubes\n", 20_000 * (nameHeader + 6)}, peeks: {"peek 1\n", 200_000}} {
		before := d.shared.Memory.Held()
		g.deaf = true
		g.send(c.command)
		g.Wrote(d.now, 0)
		if held := d.shared.Memory.Held() - before; held < c.bytes {
			t.Errorf("%q counts for %d bytes, want %d at least", c.command, held, c.bytes)
		}
		g.deaf = false
		g.proceed()
		if held := d.shared.Memory.Held() - before; held != 0 {
			t.Errorf("%q counts for %d bytes after it was read", c.command, held)
		}
	}
}

// All pieces of a list of names share one buffer, so that long lists cause few
// allocations.
func TestPiecesOfListShareABuffer(t *testing.T) {
	d := newDriver(t)
	s := d.eng.Open(nil)
	for i := range 20_000 {
		d.eng.Watch(s, fmt.Appendf(nil, "tube-%d", i))
	}
	var o output
	o.list(d.eng.TubeNames())
	buffers, text := make(map[*byte]bool), ""
	for !o.empty() {
		piece := o.next()
		buffers[&piece[:1][0]] = true
		text += string(piece)
		o.wrote(len(piece))
	}
	if len(buffers) > 2 { // the first line has another buffer
		t.Errorf("%d buffers", len(buffers))
	}
	if !strings.HasPrefix(text, "OK ") || !strings.HasSuffix(text, "- tube-19999\n\r\n") || strings.Count(text, "\n- ") != 20_001 {
		t.Errorf("%d bytes, the last are %q", len(text), text[len(text)-20:])
	}
}

// A list of jobs counts while it is built in several turns. Replies count while they wait
// for a sync.
func TestRepliesCountWhileTheyAreBuilt(t *testing.T) {
	d := newDriver(t)
	s := d.eng.Open(nil)
	for id := range uint64(10_000) {
		d.eng.Put(d.now, s, engine.Spec{TTR: 3600}, nil)
		d.eng.ReserveJob(d.now, s, id+1)
	}
	for _, command := range []string{"list-jobs default reserved 1000\r\n", strings.Repeat("stats-job 1\r\n", 100)} {
		clients := make([]*client, 10)
		for i := range clients {
			clients[i] = d.connect()
		}
		for _, g := range clients {
			g.Receive(d.batch, d.now, []byte(command))
		}
		most, turns := 0, 0
		for ; d.batch.Len() > 0; turns++ {
			d.eng.Tick(d.now)
			d.now = d.batch.Apply(d.eng, d.now)
			d.batch.TurnOver()
			built := 0
			for _, g := range clients {
				built += len(g.out.bytes)
				if g.out.rest != nil {
					built += len(g.out.rest.body)
				}
				if l, ok := g.long.command.(*listing); ok {
					built += len(l.data)
				}
			}
			if held := d.shared.Memory.Held(); held < int64(built) && built > 10*leastHeld {
				t.Fatalf("%.20q: %d bytes are built, and %d count", command, built, held)
			}
			most = max(most, built)
			d.batch.Settle(nil)
			d.batch.Reset()
			for _, g := range clients {
				g.Advance(d.batch, d.now)
			}
		}
		if list := strings.HasPrefix(command, "list"); most < 150_000 || list != (turns > 10) {
			t.Errorf("%.20q: %d bytes at most, in %d turns", command, most, turns)
		}
		for _, g := range clients {
			g.end()
		}
		if held := d.shared.Memory.Held(); held != 0 {
			t.Errorf("%.20q: %d bytes count for ended clients", command, held)
		}
	}
}
