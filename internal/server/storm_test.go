package server

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

const (
	stormClients  = 50
	stormCommands = 400
)

// Fifty clients do at random what workers and producers do, over real sockets.
// At the end the engine is sound, and what the clients were told of jobs put and
// deleted adds up with what is left.
func TestStorm(t *testing.T) {
	t.Parallel()
	for _, loops := range []int{1, 3} {
		t.Run(fmt.Sprintf("loops=%d", loops), func(t *testing.T) { storm(t, loops) })
	}
}

func storm(t *testing.T, loops int) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := start(t, Options{Loops: loops})
	l := listenOn(t, "tcp")
	r.serve(l)

	var sum struct {
		sync.Mutex
		counts
	}
	var clients sync.WaitGroup
	for i := range stormClients {
		clients.Go(func() {
			s := stormClient{tb: t, random: rand.New(rand.NewPCG(seed, uint64(i))), held: make(map[uint64]bool)}
			s.connect(l.Addr().String())
			for range stormCommands {
				s.step(l.Addr().String())
			}
			s.nc.Close()
			sum.Lock()
			defer sum.Unlock()
			sum.put += s.put
			sum.deleted += s.deleted
		})
	}
	clients.Wait()
	for r.stats().Sessions > 0 { // until all their ends have been seen
		time.Sleep(time.Millisecond)
	}
	st := r.stats()
	left := st.Ready + st.Delayed + st.Buried
	if st.Reserved != 0 || st.Waiting != 0 || st.Producers != 0 || st.Workers != 0 {
		t.Errorf("without clients: %+v", st)
	}
	if st.TotalJobs != sum.put || left != sum.put-sum.deleted {
		t.Errorf("%d jobs put, %d deleted, %d left; the clients counted %d and %d", st.TotalJobs, st.TotalJobs-left, left, sum.put, sum.deleted)
	}
	if sum.deleted == 0 || left == 0 {
		t.Errorf("%d jobs deleted and %d left: the storm tested little", sum.deleted, left)
	}
}

type counts struct{ put, deleted uint64 }

// A stormClient gives one command after the other, mostly sensible ones, and
// checks that each reply is one that the command can have.
type stormClient struct {
	tb     testing.TB
	random *rand.Rand
	nc     net.Conn
	in     *bufio.Reader
	held   map[uint64]bool // jobs reserved and not yet given back
	counts
}

func (s *stormClient) connect(addr string) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		s.tb.Error(err)
		return
	}
	s.nc, s.in = nc, bufio.NewReader(nc)
	clear(s.held)
}

func (s *stormClient) step(addr string) {
	tube := string(rune('a' + s.random.IntN(3)))
	switch s.random.IntN(12) {
	default:
		body := strings.Repeat("x", s.random.IntN(1000))
		cmd := fmt.Sprintf("put %d 0 6000 %d\r\n%s\r\n", s.random.IntN(5), len(body), body)
		if s.random.IntN(10) == 0 {
			cmd = strings.Replace(cmd, " 0 6000", " 3600 6000", 1)
		}
		if r := s.do(cmd, wire.Inserted); r.Kind == wire.Inserted {
			s.put++
		}
	case 0:
		s.do("use "+tube+"\r\n", wire.Using)
	case 1:
		s.do("watch "+tube+"\r\n", wire.Watching)
	case 2:
		s.do("ignore "+tube+"\r\n", wire.Watching, wire.NotIgnored)
	case 3, 4, 5:
		cmd := fmt.Sprintf("reserve-with-timeout %d\r\n", s.random.IntN(100)/99)
		if r := s.do(cmd, wire.Reserved, wire.TimedOut, wire.DeadlineSoon); r.Kind == wire.Reserved {
			s.held[r.ID] = true
		}
	case 6, 7, 8:
		s.finish()
	case 9:
		s.do([]string{"kick 3\r\n", "peek-ready\r\n", "stats\r\n", "list-tubes\r\n", "nonsense\r\n"}[s.random.IntN(5)],
			wire.Kicked, wire.Found, wire.NotFound, wire.OK, wire.UnknownCommand)
	case 10:
		if s.random.IntN(5) == 0 { // go, perhaps in the middle of a wait or of a put
			io.WriteString(s.nc, []string{"", "reserve\r\n", "put 0 0 1 100\r\nx", "quit\r\n"}[s.random.IntN(4)])
			s.nc.Close()
			s.connect(addr)
		}
	}
}

// finish deals with one of the jobs that are held.
func (s *stormClient) finish() {
	for id := range s.held {
		delete(s.held, id)
		switch s.random.IntN(5) {
		default:
			s.do(fmt.Sprintf("delete %d\r\n", id), wire.Deleted)
			s.deleted++
		case 0:
			s.do(fmt.Sprintf("release %d 1 0\r\n", id), wire.Released)
		case 1:
			s.do(fmt.Sprintf("bury %d 1\r\n", id), wire.Buried)
		}
		return
	}
}

// do gives a command and returns its reply, which must be one of those allowed.
func (s *stormClient) do(cmd string, allowed ...wire.ReplyKind) (r wire.Reply) {
	io.WriteString(s.nc, cmd)
	var buf []byte
	for {
		n, err := wire.ParseReply(buf, &r)
		switch {
		case err != nil:
			s.tb.Error(err)
			return wire.Reply{}
		case n > 0:
			if s.in.Buffered() > 0 {
				s.tb.Errorf("%q: more than one reply", cmd)
			}
			for _, kind := range allowed {
				if r.Kind == kind {
					return r
				}
			}
			s.tb.Errorf("%.40q: %q", cmd, buf)
			return r
		}
		line, err := s.in.ReadSlice('\n')
		buf = append(buf, line...)
		if err != nil && err != bufio.ErrBufferFull {
			s.tb.Errorf("%.40q: after %.100q: %v", cmd, buf, err)
			return wire.Reply{}
		}
	}
}

// Many workers wait for each of many jobs: every job goes to one of them, and
// the turns of producers and workers meet in all ways.
func TestHandOverStorm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const workers, producers, each = 20, 5, 200
		r := start(t, Options{})
		var got sync.Map
		var done sync.WaitGroup
		for range workers {
			c := r.dial()
			done.Go(func() {
				for range producers * each / workers {
					c.send("reserve\n")
					var id uint64
					fmt.Sscanf(c.line("RESERVED"), "RESERVED %d", &id)
					c.want("x\n")
					if _, twice := got.LoadOrStore(id, true); twice {
						t.Errorf("job %d came twice", id)
					}
					c.do(fmt.Sprintf("delete %d\n", id), "DELETED\n")
				}
			})
		}
		for range producers {
			c := r.dial()
			done.Go(func() {
				for range each {
					c.send("put 0 0 60 1\nx\n")
					c.line("INSERTED")
				}
			})
		}
		done.Wait()
		synctest.Wait()
		if st := r.stats(); st.Ready+st.Reserved != 0 || st.TotalJobs != producers*each {
			t.Errorf("at the end: %+v", st)
		}
	})
}
