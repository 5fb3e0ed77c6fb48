package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A loop replies with the same bytes through sockets and through streams, for any input
// of a client in any pieces.
func TestSocketsAndStreamsAgree(t *testing.T) {
	const maxJob = 70_000
	rapid.Check(t, func(rt *rapid.T) {
		talk := drawTalk(rt, maxJob)
		var want, got []byte
		synctest.Test(t, func(t *testing.T) {
			want = start(t, Options{MaxJobSize: maxJob}).converse(talk)
		})
		t.Run("", func(t *testing.T) {
			got = start(t, Options{MaxJobSize: maxJob}).converseTCP(talk)
		})
		if !bytes.Equal(got, want) {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			rt.Fatalf("a socket got %d bytes and a stream %d; they differ from byte %d on:\n%.200q\n%.200q",
				len(got), len(want), at, got[at:], want[at:])
		}
	})
}

// sent is a client's input. Failure messages show only its start.
type sent string

func (s sent) GoString() string { return fmt.Sprintf("%.40q (%d bytes)", string(s), len(s)) }

// drawTalk draws a client's input, as pieces that are sent one by one. Quit comes last,
// because later input resets the connection, and the reset can overtake the replies.
// Little input follows a reserve that can wait, because much input would end a connection
// without a socket.
func drawTalk(t *rapid.T, maxJob int) [][]byte {
	id := rapid.IntRange(1, 30)
	numbered := func(format string) *rapid.Generator[sent] {
		return rapid.Map(id, func(n int) sent { return sent(fmt.Sprintf(format, n)) })
	}
	command := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) sent {
			size := rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(0, maxJob+10)).Draw(t, "size")
			line := fmt.Sprintf("put %d %d 100 %d\r\n", id.Draw(t, "pri"), rapid.SampledFrom([]int{0, 1000}).Draw(t, "delay"), size)
			return sent(line + strings.Repeat("b", size) + "\r\n")
		}),
		numbered("delete %d\r\n"),
		numbered("peek %d\r\n"),
		numbered("bury %d 1\r\n"),
		numbered("release %d 1 0\r\n"),
		rapid.SampledFrom([]sent{
			"reserve-with-timeout 0\r\n", "reserve-with-timeout 0\r\n", "kick 3\r\n", "list-tubes\r\n",
			"use a\r\n", "watch a\r\n", "ignore default\r\n", "nonsense\r\n", "put 0 0 1 3\r\nlonger\r\n",
			sent(strings.Repeat("x", 300) + "\r\n"), sent(strings.Repeat("list-tube-used\r\n", 2*128+3)),
		}),
	)
	var talk []byte
	for _, s := range rapid.SliceOfN(command, 1, 40).Draw(t, "commands") {
		talk = append(talk, s...)
	}
	talk = append(talk, rapid.SampledFrom([]sent{"", "quit\r\n", "reserve\r\n", "reserve\r\nuse b\r\n"}).Draw(t, "end")...)
	if rapid.Bool().Draw(t, "cut off") {
		talk = talk[:rapid.IntRange(0, len(talk)).Draw(t, "at")]
	}
	var pieces [][]byte
	for len(talk) > 0 {
		n := rapid.OneOf(rapid.IntRange(1, 50), rapid.IntRange(1, 200_000)).Draw(t, "piece")
		n = min(n, len(talk))
		if len(pieces) > 50 {
			n = len(talk)
		}
		pieces = append(pieces, talk[:n])
		talk = talk[n:]
	}
	return pieces
}

// converse sends pieces through a connection in memory, half-closes it, and returns all
// replies.
func (r *rig) converse(talk [][]byte) []byte {
	c := r.dial()
	replies := c.readAll()
	for _, piece := range talk {
		c.nc.Write(piece) // the server might have closed it
		synctest.Wait()
	}
	c.halfClose()
	return <-replies
}

// converseTCP is like converse, but uses a socket.
func (r *rig) converseTCP(talk [][]byte) []byte {
	c := r.dialTCP()
	replies := c.readAll()
	for _, piece := range talk {
		c.nc.Write(piece)
	}
	c.nc.(*net.TCPConn).CloseWrite() // fails if the server has closed it
	return <-replies
}

// readAll reads until the end of the connection.
func (c *client) readAll() <-chan []byte {
	all := make(chan []byte, 1)
	go func() {
		var b bytes.Buffer
		io.Copy(&b, c.nc)
		all <- b.Bytes()
	}()
	return all
}

// When the server has no free descriptors, connected clients are served, and new clients
// wait for a descriptor.
func TestLastDescriptor(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	log := &logged{}
	r := start(t, Options{Logger: slog.New(log)})
	l := listenOn(r.tb, "tcp")
	first := r.dialListener(l)
	first.do("use x\n", "USING x\n")

	// Both ends of a connection belong to this process, so only one descriptor is left
	// free for a connection.
	var err error
	var free [2]int // the two lowest free descriptors
	for i := range free {
		if free[i], err = unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, fd := range free {
		unix.Close(fd)
	}
	tight := limit
	tight.Cur = uint64(free[1])
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &tight); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	last, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	r.eventually("it is logged", func() bool { return log.count("cannot accept connections") == 1 })
	if n := first.stat("current-connections"); n != "1" {
		t.Errorf("%s connections, want the first", n)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	newClient(t, last).do("use y\n", "USING y\n")
	first.do("use y\n", "USING y\n")
}

// syncingLog is a broker.Log that reports the start of each Sync and lets the test end
// it. It also reports each Append.
type syncingLog struct {
	failingLog
	changed  bool
	appended chan int
	begins   chan struct{}
	ends     chan error
}

func newSyncingLog() *syncingLog {
	return &syncingLog{appended: make(chan int, 10), begins: make(chan struct{}), ends: make(chan error)}
}

func (l *syncingLog) Append(changes []engine.Change) error {
	l.changed = true
	l.appended <- len(changes)
	return nil
}

func (l *syncingLog) Flush() (durable bool, err error) {
	durable, l.changed = !l.changed, false
	return durable, nil
}

func (l *syncingLog) Sync() error {
	l.begins <- struct{}{}
	return <-l.ends
}

// During a sync, a loop serves other clients, whose replies wait for the next sync. A
// reply is sent when its own sync has ended, and reports an error if the sync failed.
func TestLoopContinuesDuringSync(t *testing.T) {
	log := newSyncingLog()
	r := startLogged(t, Options{SlowSync: -1}, broker.Options{Log: log})
	l := listenOn(r.tb, "tcp")
	a := r.dialListener(l)
	b := dialTo(t, l)
	a.do("use y\n", "USING y\n")
	b.do("use y\n", "USING y\n")
	a.send("put 0 0 9 1\na\n")
	<-log.begins
	if n := <-log.appended; n != 1 {
		t.Fatalf("%d changes, want the put", n)
	}
	b.send("put 0 0 9 1\nb\n")
	if n := <-log.appended; n != 1 { // before any sync has ended
		t.Fatalf("%d changes, want the put", n)
	}
	a.send("use x\n") // the loop reads this only after it has sent the reply
	log.ends <- nil
	a.want("INSERTED 1\n")
	<-log.begins
	log.ends <- errors.New("input/output error")
	b.want("INTERNAL_ERROR\n")
	a.want("USING x\n")
}

// gatedLog is a broker.Log whose turns each need a sync, which ends when the gate opens.
type gatedLog struct {
	failingLog
	begins chan struct{}
	gate   chan struct{} // syncs end when it is closed
}

func (l *gatedLog) Flush() (durable bool, err error) { return false, nil }

func (l *gatedLog) Sync() error {
	l.begins <- struct{}{}
	<-l.gate
	return nil
}

// A loop runs a turn for due events while all its batches wait for the current sync. That
// turn is also synced.
func TestDueDuringSync(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &gatedLog{begins: make(chan struct{}, 10), gate: make(chan struct{})}
		r := startLogged(t, Options{}, broker.Options{Log: log})
		l, err := newLoop(r.Server, newSystemPoller)
		if err != nil {
			t.Fatal(err)
		}
		defer l.close()
		if settled, _ := l.opener.Start(l.batch); settled {
			t.Fatal("the turn of a batch is settled without a sync")
		}
		l.unsettled, l.syncing = 1, 1
		r.broker.StartSync()
		<-log.begins
		l.runAlone(l.opener)
		close(log.gate)
		synctest.Wait()
		if len(log.begins) == 0 {
			t.Error("no sync was started for the turn")
		}
	})
}
