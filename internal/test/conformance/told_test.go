package conformance

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// TestReplyIsVisible runs two clients against the real server and against ours. After one
// client has received a reply, or the end of its connection, the next command of the
// other client must reflect the effect on every try.
func TestReplyIsVisible(t *testing.T) {
	const tries = 200
	theirs := func(t *testing.T) Process { // skips only this subtest if beanstalkd is missing
		p, _ := beanstalkd(t)
		return p
	}
	for name, find := range map[string]func(*testing.T) Process{"beanstalkd": theirs, "beanpole": beanpole} {
		t.Run(name, func(t *testing.T) {
			s := find(t)
			for _, r := range races {
				t.Run(r.name, func(t *testing.T) {
					t.Parallel()
					server := s.Start(t, nil)
					a := connect(t, server)
					for range tries {
						r.run(a, connect(t, server))
					}
				})
			}
		})
	}
}

// A race is a command of client b with its reply, and the effect that client a must see.
// A job exists at the start.
type race struct {
	name string
	run  func(a, b *talker)
}

var races = []race{
	{"quit releases jobs", func(a, b *talker) {
		a.reservedBy(b)
		b.send("quit")
		b.wantEnd()
		a.take()
	}},
	{"quit after other commands", func(a, b *talker) {
		a.put()
		b.send("reserve\r\nuse x\r\nquit")
		b.wantJob("RESERVED")
		b.want("USING x")
		b.wantEnd()
		a.take()
	}},
	{"half-close releases jobs", func(a, b *talker) {
		a.reservedBy(b)
		b.halfClose()
		b.wantEnd()
		a.take()
	}},
	{"quit is not counted", func(a, b *talker) {
		b.do("use x", "USING x")
		b.send("quit")
		b.wantEnd()
		a.wantStat("stats", "current-connections", "1")
	}},
	{"a client is counted", func(a, b *talker) {
		b.do("use x", "USING x")
		a.wantStat("stats", "current-connections", "2")
		b.send("quit")
		b.wantEnd()
	}},
	{"release", func(a, b *talker) {
		id := a.reservedBy(b)
		b.do("release "+id+" 0 0", "RELEASED")
		a.take()
		b.end()
	}},
	{"bury and kick", func(a, b *talker) {
		id := a.reservedBy(b)
		b.do("bury "+id+" 0", "BURIED")
		a.do("kick 1", "KICKED 1")
		a.take()
		b.end()
	}},
	{"delete", func(a, b *talker) {
		id := a.reservedBy(b)
		b.do("delete "+id, "DELETED")
		a.do("peek "+id, "NOT_FOUND")
		b.end()
	}},
	{"put", func(a, b *talker) {
		b.put()
		a.take()
		b.end()
	}},
	{"watch", func(a, b *talker) {
		b.do("watch x", "WATCHING 2")
		a.wantStat("stats-tube x", "current-watching", "1")
		b.end()
	}},
}

// A talker is a test client; an error on it ends the test.
type talker struct {
	t  *testing.T
	nc net.Conn
	r  *bufio.Reader
}

func connect(t *testing.T, server Instance) *talker {
	t.Helper()
	nc, err := server.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return &talker{t, nc, bufio.NewReader(nc)}
}

func (c *talker) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.nc, line+"\r\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *talker) line() string {
	c.t.Helper()
	line, err := c.r.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.TrimRight(line, "\r\n")
}

func (c *talker) want(line string) {
	c.t.Helper()
	if got := c.line(); got != line {
		c.t.Fatalf("got %q, want %q", got, line)
	}
}

func (c *talker) do(command, reply string) {
	c.t.Helper()
	c.send(command)
	c.want(reply)
}

// wantJob checks that the reply has a job with an empty body, and returns the job's id.
func (c *talker) wantJob(word string) (id string) {
	c.t.Helper()
	line := c.line()
	if _, err := fmt.Sscanf(line, word+" %s 0", &id); err != nil {
		c.t.Fatalf("got %q, want %s", line, word)
	}
	c.want("")
	return id
}

func (c *talker) wantEnd() {
	c.t.Helper()
	if rest, _ := io.ReadAll(c.r); len(rest) > 0 {
		c.t.Fatalf("got %q, want the end of the connection", rest)
	}
}

func (c *talker) halfClose() {
	c.t.Helper()
	if err := c.nc.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		c.t.Fatal(err)
	}
}

// end closes the connection, so that the next try finds the server in the same state.
func (c *talker) end() {
	c.t.Helper()
	c.send("quit")
	c.wantEnd()
}

func (c *talker) put() {
	c.t.Helper()
	c.send("put 0 0 60 0\r\n")
	if line := c.line(); !strings.HasPrefix(line, "INSERTED ") {
		c.t.Fatalf("got %q, want INSERTED", line)
	}
}

// reservedBy puts a job that another client then reserves.
func (c *talker) reservedBy(b *talker) (id string) {
	c.t.Helper()
	c.put()
	b.send("reserve")
	return b.wantJob("RESERVED")
}

// take reserves and deletes a job, which must be ready.
func (c *talker) take() {
	c.t.Helper()
	c.send("reserve-with-timeout 0")
	c.do("delete "+c.wantJob("RESERVED"), "DELETED")
}

func (c *talker) wantStat(command, key, value string) {
	c.t.Helper()
	c.send(command)
	var size int
	if line := c.line(); !strings.HasPrefix(line, "OK ") {
		c.t.Fatalf("got %q, want OK", line)
	} else if _, err := fmt.Sscanf(line, "OK %d", &size); err != nil {
		c.t.Fatal(err)
	}
	text := make([]byte, size+len("\r\n"))
	if _, err := io.ReadFull(c.r, text); err != nil {
		c.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if got, ok := strings.CutPrefix(line, key+": "); ok {
			if got = strings.TrimSpace(got); got != value {
				c.t.Fatalf("%s is %s, want %s", key, got, value)
			}
			return
		}
	}
	c.t.Fatalf("no %s in %s", key, text)
}
