package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A list too long for a turn arrives whole, as it was when it was asked for, and
// in its place among the other replies, and others are served meanwhile.
func TestLongList(t *testing.T) {
	r := start(t, Options{})
	const tubes = 20_000
	var names strings.Builder
	r.broker.Call(func(e *engine.Engine, _ int64) {
		s := e.Open(nil)
		for i := range tubes {
			name := fmt.Sprintf("a-rather-long-name-of-a-tube-%07d", i)
			e.Watch(s, []byte(name))
			names.WriteString("- " + name + "\n")
		}
	})
	all := "---\n- default\n" + names.String()
	c, other := r.dialTCP(), r.dialTCP()
	c.send("use b\nlist-tubes\nuse c\nlist-tubes\nlist-tubes-watched\nuse d\n")
	c.want("USING b\n")
	other.do("list-tube-used\n", "USING default\n")
	reply := func(data string) string { return fmt.Sprintf("OK %d\r\n%s\r\n", len(data), data) }
	for _, want := range []string{reply(all + "- b\n"), "USING c\r\n"} {
		if got := c.read(len(want)); got != want {
			t.Fatalf("got %d bytes that differ from %.40q", len(got), want)
		}
	}
	// In the second list the place of b, which has gone, is taken.
	want := reply(all + "- c\n")
	if got := c.read(len(want)); got != want {
		t.Fatalf("the second list: %.60q ... %q", got, got[len(got)-20:])
	}
	c.want("OK 14\n")
	if got := c.read(14 + 2); got != "---\n- default\n\r\n" {
		t.Fatalf("got %q", got)
	}
	c.want("USING d\n")
}

// read reads n bytes.
func (c *client) read(n int) string {
	c.tb.Helper()
	b := make([]byte, n)
	for have := 0; have < n; {
		m, err := c.nc.Read(b[have:])
		if err != nil {
			c.tb.Fatalf("after %d of %d bytes: %v", have, n, err)
		}
		have += m
	}
	return string(b)
}

const manyKicked = 20_000

// putLarge puts a job of so many bytes, number 1, into the tube default.
func (r *rig) putLarge(size int) {
	r.broker.Call(func(e *engine.Engine, now int64) {
		e.PutInto(now, []byte("default"), engine.Spec{TTR: 3600}, make([]byte, size))
	})
}

// buryMany makes jobs that are buried in the tube default.
func (r *rig) buryMany() {
	r.broker.Call(func(e *engine.Engine, now int64) {
		s := e.Open(nil)
		for range manyKicked {
			id, _ := e.Put(now, s, engine.Spec{TTR: 3600}, nil)
			e.ReserveJob(now, s, id)
			e.Bury(s, id, 0)
		}
	})
}

// A kick of very many jobs lets others in between its turns, kicks them all, and
// is followed by what the client sent after it.
func TestLongKick(t *testing.T) {
	r := start(t, Options{})
	r.buryMany()
	c := r.dialTCP()
	c.do("kick 1000000\nuse x\n", fmt.Sprintf("KICKED %d\nUSING x\n", manyKicked))
	if st := r.stats(); st.Ready != manyKicked || st.Buried != 0 {
		t.Errorf("%d are ready, %d are buried", st.Ready, st.Buried)
	}
	// It goes on to its end when the client has sent nothing more.
	r.buryMany()
	c.send("use default\nkick 1000000\n")
	c.halfClose()
	c.want(fmt.Sprintf("USING default\nKICKED %d\n", manyKicked))
	c.wantEnd()
}

// A long kick takes many turns, between which others are served.
func TestLongKickTakesTurns(t *testing.T) {
	log := &countingLog{}
	r := startLogged(t, Options{}, broker.Options{Log: log})
	r.buryMany()
	c := r.dialTCP()
	before, turns := 0, 0
	r.broker.Call(func(*engine.Engine, int64) { before = log.changed })
	c.do("kick 1000000\n", fmt.Sprintf("KICKED %d\n", manyKicked))
	r.broker.Call(func(*engine.Engine, int64) { turns = log.changed - before })
	if turns < manyKicked/1000 {
		t.Errorf("%d jobs were kicked in %d turns", manyKicked, turns)
	}
}

// What a client sends at once is as many turns as it is work.
func TestTurnsAreBoundedByWork(t *testing.T) {
	log := &countingLog{}
	r := startLogged(t, Options{}, broker.Options{Log: log})
	r.buryMany()
	c := r.dialTCP()
	r.broker.Call(func(*engine.Engine, int64) { log.most = 0 })
	const kicks = 200 // of which each is done in one turn
	c.do(strings.Repeat(fmt.Sprintf("kick %d\n", manyKicked/kicks), kicks),
		strings.Repeat(fmt.Sprintf("KICKED %d\n", manyKicked/kicks), kicks))
	most := 0
	r.broker.Call(func(*engine.Engine, int64) { most = log.most })
	if most < manyKicked/kicks || most > manyKicked/2 {
		t.Errorf("of %d jobs a turn kicked %d", manyKicked, most)
	}
}

// countingLog counts the turns that change something, and how much at most.
type countingLog struct {
	failingLog
	changed, most int
}

func (l *countingLog) Append(c []engine.Change) error {
	l.changed++
	l.most = max(l.most, len(c))
	return nil
}

// When an early part of a kick could not be made durable, the kick is not
// acknowledged, though its last part was.
func TestLongKickFails(t *testing.T) {
	log := &failOnce{}
	r := startLogged(t, Options{}, broker.Options{Log: log})
	r.buryMany()
	r.broker.Call(func(*engine.Engine, int64) { log.err = errors.New("no space left on device") })
	r.dialTCP().do("kick 1000000\nuse x\n", "INTERNAL_ERROR\nUSING x\n")
}

// failOnce is a broker.Log whose next Flush of Changes fails with err.
type failOnce struct {
	failingLog
	changed bool
}

func (l *failOnce) Append(c []engine.Change) error {
	l.changed = len(c) > 0
	return nil
}

func (l *failOnce) Flush() (durable bool, err error) {
	if l.changed {
		err = l.err
		l.err, l.changed = nil, false
	}
	return true, err
}
