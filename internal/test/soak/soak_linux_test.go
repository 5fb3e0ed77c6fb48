package soak

import (
	"flag"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/test/exectest"
	"github.com/beanpole-mq/beanpole/internal/test/netns"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

var soakProgram = flag.String("soak.program", "", "run this program instead of building cmd/beanpole; what is there counts at each start")

// patience is the timeout for events that must happen, even during faults.
const patience = time.Minute

// A soak contains the parts that all tests share: the program, and choices drawn from a
// seed.
type soak struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	program string
}

func newSoak(t *testing.T) *soak {
	seed := seeds.One(t)
	s := &soak{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), program: *soakProgram}
	if s.program == "" {
		var err error
		if s.program, err = exectest.Program(); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// pause waits for a time up to most.
func (s *soak) pause(most time.Duration) { time.Sleep(time.Duration(s.rng.Int64N(int64(most)))) }

// TestSoak runs one server after another with the same journal and with all faults.
func TestSoak(t *testing.T) {
	t.Parallel()
	if isolate(t) {
		return
	}
	c := newSingle(newSoak(t))
	faults := c.possible(serverFaults)
	for range seeds.Rounds(t, 2) {
		c.s.rng.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		c.life(c.options(), faults[:1+c.s.rng.IntN(3)], c.s.rng.IntN(2) == 0)
	}
}

// TestCrash repeatedly kills a server under load, with the same journal.
func TestCrash(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"synced before the reply": {"-s", "20000"},
		"synced in between":       {"-s", "20000", "-f", "50"},
		"large segments":          {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newSingle(newSoak(t))
			for range seeds.Rounds(t, 2) {
				c.life(args, nil, true)
			}
		})
	}
}

// TestRestart stops a server and starts it again. Its socket stays open, as with systemd:
// no connection is refused, and clients that connect during the restart get their
// replies.
func TestRestart(t *testing.T) {
	t.Parallel()
	c := newSingle(newSoak(t))
	p := c.members[0]
	p.args = []string{"-s", "20000"}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		p.socket, err = l.(*net.TCPListener).File()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.socket.Close()
	p.clients = l.Addr().String()
	l.Close()
	c.must(p.start())
	c.load = c.begin()
	for range seeds.Rounds(t, 2) {
		c.load.await(acksPerRound)
		p.terminate()
		early := &clients{c: c, timeout: patience}
		if !early.connect() {
			t.Fatal("a connection was refused while no server ran")
		}
		c.must(p.start())
		if !early.do("put", 0) {
			t.Error("a client that connected while no server ran got no reply")
		}
		early.disconnect()
	}
	c.load.await(acksPerRound)
	c.load.end()
	c.audit()
	c.h.check(t)
}

// The journal keeps the descriptors that it needs, regardless of the number of clients.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	c := newSingle(newSoak(t))
	p := c.members[0]
	p.shell, p.args = "ulimit -n 64", []string{"-s", "200000"}
	c.must(p.start())
	k := &clients{c: c, rng: c.s.rng, timeout: patience}
	k.connect()
	var others []io.Closer
	for range 200 {
		others = append(others, p.dial())
	}
	for range 10 { // half a MB each time
		if !k.talk(repeat(request{verb: "put"}, 400)...) {
			t.Fatalf("no answer\n%s", p.srv.Log.End())
		}
	}
	c.h.check(t)
	for _, nc := range others {
		nc.Close()
	}
	if health := p.stats()["journal-health"]; health != "ok" {
		t.Errorf("journal-health is %q", health)
	}
}

// After clients have disconnected, the server frees the memory that they used.
func TestMemoryIsFreed(t *testing.T) {
	t.Parallel()
	c := newSingle(newSoak(t))
	p := c.members[0]
	p.args = []string{"--stall-timeout", "1h"}
	c.must(p.start())
	half := wire.AppendCommand(nil, &wire.Command{Op: wire.Put, TTR: 9, Body: make([]byte, 65_435)})
	var all []io.Closer
	for range 1500 {
		nc := p.dial()
		all = append(all, nc)
		if _, err := nc.Write(half[:len(half)-100]); err != nil {
			t.Fatal(err)
		}
	}
	const much = 60 << 20
	until(t, "half puts take memory", func() bool { return resident(p.srv.Cmd.Process.Pid) > much })
	// The server returns memory to the system every few seconds. Its estimate of future
	// use must not include the memory of these clients.
	time.Sleep(6 * time.Second)
	for _, nc := range all {
		nc.Close()
	}
	until(t, "it is given back", func() bool { return resident(p.srv.Cmd.Process.Pid) < much/2 })
}

// newSingle returns a single server that is not yet started.
func newSingle(s *soak) *group {
	c := &group{s: s, h: newHistory()}
	if netns.Isolated() {
		c.network = newNetwork(s.t)
	}
	p := &process{c: c, dir: filepath.Join(c.disk(), "journal"), program: s.program, clients: freeAddress(s.t)}
	c.must(os.Mkdir(p.dir, 0o700))
	c.members = []*process{p}
	s.t.Cleanup(c.stop) // runs before the directory is removed
	return c
}

// options returns random options for a life.
func (c *group) options() (args []string) {
	pick := func(of ...[]string) { args = append(args, of[c.s.rng.IntN(len(of))]...) }
	pick(nil, nil, []string{"-f", "0"}, []string{"-f", "10"}, []string{"-f", "50"}, []string{"-F"}) // without syncs: only the process dies, not the system
	pick(nil, []string{"-s", "512"}, []string{"-s", "4096"}, []string{"-s", "20000"}, []string{"-s", "65536"}, []string{"-s", "1000000"})
	pick(nil, nil, []string{"-V"}, []string{"-VV"})
	pick(nil, nil, []string{"--max-connections", "10"})
	pick(nil, nil, []string{"--stall-timeout", "2s"}, []string{"--idle-timeout", "4s"})
	return args
}

// life runs one server: start, audit, clients, faults, end.
func (c *group) life(args []string, faults []fault, kill bool) {
	p := c.members[0]
	p.args = args
	c.s.t.Logf("beanpole %q", args)
	c.must(p.start())
	c.audit()
	c.h.settle(c.s.t)
	c.load = c.begin()
	c.load.await(acksPerRound)
	for _, f := range faults {
		c.s.t.Log(f.name)
		f.do(c)
		c.load.await(acksPerRound)
	}
	if kill {
		c.s.pause(400 * time.Millisecond)
		p.kill()
		c.load.end()
	} else {
		c.load.end()
		until(c.s.t, "a server without clients has given back what they took", func() bool {
			sockets, all := descriptors(p.srv.Cmd.Process.Pid)
			return sockets <= 2 && all < 60 && resident(p.srv.Cmd.Process.Pid) < 400<<20
		})
		p.terminate()
		c.run("journal", "check", p.dir)
	}
	for _, text := range []string{"panic:", "fatal error:", "DATA RACE"} {
		if strings.Contains(p.srv.Log.String(), text) {
			c.s.t.Fatalf("the server panicked\n%s", p.srv.Log.String())
		}
	}
}

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "8") // most tests wait; the command line overrides it
	os.Exit(exectest.Main(m))
}
