package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// TestTwin sends the same random conversations to the real beanstalkd and to beanpole,
// which uses the same protocol version, and compares all replies. Sessions with even
// seeds are fast, with times that never end. Sessions with odd seeds use windows of time
// in which delays, TTRs, pauses and timeouts end.
//
// Replies that differ must differ in each of the attempts to repeat the conversation: a
// machine can be busy, and a time can end within the same milliseconds as a command. If
// they differ each time, the test shrinks the conversation and prints it as a transcript.
func TestTwin(t *testing.T) {
	t.Parallel()
	theirs, dialect := beanstalkd(t)
	mine := beanpole(t)
	if dialect == Beanstalkd112 {
		mine.Args = []string{"--compat", "1.12"}
	}
	seeds.Each(t, 2, func(t *testing.T, seed uint64) {
		g := &generator{rnd: rand.New(rand.NewPCG(seed, 0)), dialect: dialect, timed: seed%2 == 1, maxSize: 65535, held: make(map[string][]string)}
		args := []string{}
		if g.chance(20) {
			g.maxSize = 100
			args = append(args, "-z", "100")
		}
		play := func(acts []act) error { return newTwin(t, theirs, mine, args).replay(acts) }
		acts, err := newTwin(t, theirs, mine, args).explore(g)
		if err == nil {
			return
		}
		if again := insist(func() error { return play(acts) }); again == nil {
			t.Log("not repeated:", err)
			return
		}
		acts, err = shrink(acts, err, play)
		t.Errorf("%s\n%v", transcribe(args, acts), err)
	})
}

func transcribe(args []string, acts []act) string {
	var lines []string
	if len(args) > 0 {
		lines = append(lines, "server "+strings.Join(args, " "))
	}
	for _, a := range acts {
		lines = append(lines, a.render()...)
	}
	return strings.Join(lines, "\n")
}

// shrink removes steps as long as the replies still differ, first whole steps, then
// single commands. It stops after 30 seconds.
func shrink(acts []act, err error, play func([]act) error) ([]act, error) {
	end := time.Now().Add(30 * time.Second)
	acts, err = leaveOut(acts, err, play, end)
	var single []act
	for _, a := range acts {
		single = append(single, a.split()...)
	}
	if e := play(single); len(single) > len(acts) && e != nil {
		return leaveOut(single, e, play, end)
	}
	return acts, err
}

func leaveOut(acts []act, err error, play func([]act) error, end time.Time) ([]act, error) {
	for size := (len(acts) + 1) / 2; size >= 1; {
		smaller := false
		for from := len(acts) - size; from >= 0 && time.Now().Before(end); from -= size {
			fewer := slices.Concat(acts[:from], acts[from+size:])
			if e := play(fewer); e != nil {
				acts, err, smaller = fewer, e, true
			}
		}
		if !smaller || size > 1 {
			size /= 2
		}
	}
	return acts, err
}

// The marker is a job that no command changes. After each send, the reply to a peek at
// the marker shows that the connection has answered all earlier commands.
const (
	marker     = "--marker--"
	putMarker  = "use marker\r\nput 4294967295 4294967295 100 10\r\n" + marker + "\r\nuse default\r\n"
	peekMarker = "peek 1\r\n"
)

// A twin is a session with both servers. It sends on one connection at a time, and only
// after both servers have answered or are silent. Therefore both see the same order of
// events.
type twin struct {
	sides   [2]*twinSide   // theirs, ours
	asked   map[string]int // number of peeks at the marker, by connection
	start   time.Time
	windows int
	learn   func(conn, line string) // if not nil, called with every reply
}

type twinSide struct {
	in    Instance
	conns map[string]*twinConn
}

type twinConn struct {
	*stream
	replies []reply
	marks   int // number of replies to peeks at the marker
	closed  bool
}

func newTwin(t *testing.T, theirs, mine Server, args []string) *twin {
	w := &twin{asked: make(map[string]int), start: time.Now()}
	for i, s := range []Server{theirs, mine} {
		w.sides[i] = &twinSide{in: s.Start(t, args), conns: make(map[string]*twinConn)}
	}
	return w
}

// replay plays the steps of an earlier session.
func (w *twin) replay(acts []act) error {
	defer w.close()
	if err := w.begin(); err != nil {
		return err
	}
	for _, a := range acts {
		if err := w.do(a); err != nil {
			return err
		}
	}
	return w.do(act{kind: actWait})
}

// explore plays a session that the generator generates. It returns the session up to the
// step in which the replies differed.
func (w *twin) explore(g *generator) (acts []act, err error) {
	defer w.close()
	if err := w.begin(); err != nil {
		return nil, err
	}
	w.learn = g.reserved
	steps, windows := 500, 1
	if g.timed {
		windows = 4
	}
	for n := 0; w.windows < windows && n < steps; n++ {
		a := w.invent(g)
		if g.timed && time.Since(w.start) > time.Duration(w.windows)*window+active {
			a = act{kind: actWait}
		}
		acts = append(acts, a)
		if err := w.do(a); err != nil {
			return acts, err
		}
	}
	for _, a := range g.inventory() {
		acts = append(acts, a)
		if err := w.do(a); err != nil {
			return acts, err
		}
	}
	return acts, nil
}

func (w *twin) invent(g *generator) act {
	free, waits := w.free()
	var unused []string
	for _, name := range []string{"A", "B", "C", "D", "E"} {
		if w.sides[0].conns[name] == nil {
			unused = append(unused, name)
		}
	}
	if g.rnd.IntN(2000) == 0 {
		return act{kind: actDrain}
	}
	a := g.next(free, unused, waits)
	if a.kind == actWait && !g.timed {
		a = act{kind: actClose, conn: slices.Sorted(maps.Keys(w.sides[0].conns))[0]}
	}
	return a
}

func (w *twin) begin() error {
	if err := w.do(act{kind: actOpen, conn: "A"}); err != nil {
		return err
	}
	if err := w.do(act{kind: actSend, conn: "A", texts: []string{putMarker}}); err != nil {
		return err
	}
	w.start = time.Now()
	return nil
}

// free returns the connections that have answered all commands, and whether other
// connections exist.
func (w *twin) free() (names []string, waits bool) {
	for _, name := range slices.Sorted(maps.Keys(w.sides[0].conns)) {
		if w.answered(name) {
			names = append(names, name)
		} else {
			waits = true
		}
	}
	return names, waits
}

func (w *twin) answered(name string) bool {
	for _, s := range w.sides {
		if c := s.conns[name]; c.marks < w.asked[name] && !c.closed {
			return false
		}
	}
	return true
}

// closed reports whether both servers have closed the connection.
func (w *twin) closed(name string) bool {
	return w.sides[0].conns[name].closed && w.sides[1].conns[name].closed
}

// do plays one step on both servers and compares the replies. It ignores a step for a
// missing connection, which a shrunk session can contain.
func (w *twin) do(a act) error {
	if a.timed {
		time.Sleep(6 * time.Millisecond) // separates the ends of different times
	}
	exists := w.sides[0].conns[a.conn] != nil
	if exists == (a.kind == actOpen) && a.kind != actWait && a.kind != actDrain {
		return nil
	}
	switch a.kind {
	case actWait:
		w.windows++
		return w.sleep(w.start.Add(time.Duration(w.windows) * window))
	case actSend:
		w.asked[a.conn]++
	}
	for _, s := range w.sides {
		if err := s.do(a); err != nil {
			return err
		}
	}
	switch a.kind {
	case actSend:
		return w.settle(func() bool { return w.answered(a.conn) }, a.blocks)
	case actHalf:
		return w.settle(func() bool { return w.closed(a.conn) }, false)
	case actClose:
		delete(w.asked, a.conn)
	}
	time.Sleep(20 * time.Millisecond) // until both servers have noticed the close
	return w.settle(nil, false)
}

func (s *twinSide) do(a act) error {
	c := s.conns[a.conn]
	switch a.kind {
	case actOpen:
		conn, err := s.in.Dial()
		if err != nil {
			return err
		}
		s.conns[a.conn] = &twinConn{stream: newStream(conn)}
	case actClose:
		c.close()
		delete(s.conns, a.conn)
	case actHalf:
		return c.halfClose()
	case actDrain:
		return s.in.Drain()
	case actSend:
		// An error means that the server has closed the connection, which the comparison
		// of the outputs detects.
		data, from := strings.Join(a.texts, ""), 0
		for _, at := range a.cuts {
			c.send([]byte(data[from:at]))
			time.Sleep(time.Millisecond)
			from = at
		}
		c.send([]byte(data[from:] + peekMarker))
	}
	return nil
}

// sleep waits until a time. It sends a command on every free connection, because
// beanstalkd loses timers of silent connections.
func (w *twin) sleep(until time.Time) error {
	for time.Now().Before(until) {
		w.read()
		free, _ := w.free()
		for _, name := range free {
			w.asked[name]++
			for _, s := range w.sides {
				s.conns[name].send([]byte(peekMarker))
			}
		}
		time.Sleep(8 * time.Millisecond)
	}
	return w.settle(nil, false)
}

// settle reads until both servers have sent the same data and done returns true. If the
// command can block, silence is enough. It stops if they still differ after two seconds.
func (w *twin) settle(done func() bool, blocks bool) error {
	const silence = 30 * time.Millisecond
	began := time.Now()
	last := began
	for {
		if w.read() {
			last = time.Now()
		}
		err := w.compare()
		late := time.Since(began) > 2*time.Second
		switch {
		case errors.As(err, new(difference)), err != nil && late:
			return err
		case err == nil && (done == nil || done() || late || blocks && time.Since(last) > silence):
			w.forgetClosed()
			return nil
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// read reads the available data of all connections.
func (w *twin) read() (any bool) {
	for _, s := range w.sides {
		for _, c := range s.conns {
			any = c.read() || any
		}
	}
	return any
}

func (c *twinConn) read() (any bool) {
	for !c.closed {
		select {
		case chunk, ok := <-c.in:
			any = true
			if !ok {
				c.closed = true
			}
			c.buf = append(c.buf, chunk...)
			continue
		default:
		}
		break
	}
	for {
		r, rest, ok := nextReply(c.buf)
		if !ok {
			return any
		}
		c.buf = bytes.Clone(rest)
		c.replies = append(c.replies, r)
		if strings.HasPrefix(r.data, marker) {
			c.marks++
		}
	}
}

// A difference contains two replies to the same command, as lines of a transcript.
type difference []string

func (d difference) Error() string { return strings.Join(d, "\n") }

// compare compares all new replies. It returns a difference as an error if waiting cannot
// resolve it.
func (w *twin) compare() error {
	var missing error
	for name, a := range w.sides[0].conns {
		b := w.sides[1].conns[name]
		n := min(len(a.replies), len(b.replies))
		for i := range n {
			if d := diff(name, a.replies[i], b.replies[i]); d != nil {
				return difference(d)
			}
			if w.learn != nil {
				w.learn(name, a.replies[i].line)
			}
		}
		a.replies, b.replies = a.replies[n:], b.replies[n:]
		switch {
		case len(a.replies) > 0:
			missing = fmt.Errorf("%s\nours %s< (nothing)", strings.Join(a.replies[0].render("real "+name), "\n"), name)
		case len(b.replies) > 0:
			missing = fmt.Errorf("real %s< (nothing)\n%s", name, strings.Join(b.replies[0].render("ours "+name), "\n"))
		case a.closed != b.closed:
			missing = fmt.Errorf("%s: closed by beanstalkd: %t, by ours: %t", name, a.closed, b.closed)
		}
	}
	return missing
}

// forgetClosed frees the names of connections that both servers have closed.
func (w *twin) forgetClosed() {
	for name := range w.sides[0].conns {
		if w.closed(name) {
			for _, s := range w.sides {
				s.conns[name].close()
				delete(s.conns, name)
			}
			delete(w.asked, name)
		}
	}
}

func (w *twin) close() {
	for _, s := range w.sides {
		for _, c := range s.conns {
			c.close()
		}
	}
}
