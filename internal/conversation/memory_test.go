package conversation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// When the buffers of all take too much, the conversation that has made no progress for
// longest goes first, whatever it is that it holds, and those that hold nothing stay.
func TestMemoryIsBounded(t *testing.T) {
	d := newDesk(t)
	const size = 100_000
	d.shared.Memory.Max = 3 * 128 << 10
	half := fmt.Sprintf("put 0 0 9 %d\n%s", size, strings.Repeat("x", size/2))
	idle := d.guest()
	idle.send("use x\n")
	waits, sends := d.guest(), d.guest()
	waits.send("reserve\n" + strings.Repeat("use x\n", 4000)) // an ordinary client waits long
	d.now++
	sends.send(half)
	var others []*guest
	for len(d.dismissed) == 0 && len(others) < 10 {
		d.now++
		sends.send(strings.Repeat("x", 5000)) // it makes progress
		d.now++
		others = append(others, d.guest())
		others[len(others)-1].send(half)
	}
	if len(d.dismissed) != 1 || d.dismissed[0] != waits {
		t.Fatalf("%d were dismissed, want the one that waits", len(d.dismissed))
	}
	waits.end()
	d.now++
	last := d.guest()
	last.send(half)
	if got := d.dismissed[1:]; !slices.Equal(got, others[:1]) {
		t.Errorf("%d more were dismissed, want the first that does not go on", len(got))
	}
	if held := d.shared.Memory.Held(); held > d.shared.Memory.Max {
		t.Errorf("%d bytes are held, want %d at most", held, d.shared.Memory.Max)
	}
	for _, g := range append(others, idle, sends, last) {
		g.end()
	}
	if held := d.shared.Memory.Held(); held != 0 {
		t.Errorf("%d bytes are held by nobody", held)
	}
}

// A list of names that is not read counts, though it is formatted as it is read; and so
// does a large body.
func TestUnreadRepliesCount(t *testing.T) {
	d := newDesk(t)
	s := d.eng.Open(nil)
	for i := range 20_000 {
		d.eng.Watch(s, fmt.Appendf(nil, "tube-%d", i))
	}
	producer, lists, peeks := d.guest(), d.guest(), d.guest()
	producer.send(fmt.Sprintf("put 0 0 9 %d\n%s\n", 200_000, strings.Repeat("x", 200_000)))
	for g, c := range map[*guest]struct {
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
