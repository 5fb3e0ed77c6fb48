package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/test/conformance"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Each tube gets its job and keeps it, beside a load that does not see it.
func TestOccupiedTubes(t *testing.T) {
	const tubes = 101
	r := newResponder()
	runOnResponder(t, r, Options{Tube: "here", Occupied: tubes, Ops: 10})
	for i := range tubes {
		name := fmt.Sprintf("here-occupied-%d", i)
		if tube := r.tubes[name]; tube == nil || tube.puts != 1 || tube.reserves != 0 {
			t.Errorf("tube %s: %+v", name, tube)
		}
	}
	if tube := r.tubes["here"]; tube.puts != 10 || tube.reserves != 10 {
		t.Errorf("the tube of the load: %d puts, %d reserves", tube.puts, tube.reserves)
	}
}

// runOnResponder returns when run and responder are over.
func runOnResponder(t *testing.T, r *responder, o Options) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Addr = l.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- r.serve(ctx, l) }()
	_, err = Run(t.Context(), o)
	cancel()
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
}

func TestIdleConnections(t *testing.T) {
	addr := conformance.Beanstalkd(t)
	o, err := Options{Addr: addr, Idle: 7}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	var c crowd
	defer c.disperse()
	if err := c.gather(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	conn, err := client.Dial(t.Context(), addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	st, err := conn.StatsTube(t.Context(), o.Tube)
	if err != nil || st.Using != 7 {
		t.Errorf("%d connections use the tube, want 7; error %v", st.Using, err)
	}
	if err := c.verify(t.Context(), &o); err != nil {
		t.Error(err)
	}
	c.idle[3].Close()
	if err := c.verify(t.Context(), &o); err == nil || !strings.Contains(err.Error(), "idle connection: ") {
		t.Errorf("error %v although one has not stayed open", err)
	}
}

func TestCrowdUsage(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	addr := startResponder(t)
	for _, o := range []Options{{Idle: 9}, {Occupied: 70}, {Mix: Wake, Workers: 11, Idle: 5}} {
		o.Addr, o.PID, o.Ops = addr, os.Getpid(), 10
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if math.IsNaN(r.EachRSS) {
			t.Errorf("%+v: no memory", o)
		}
	}
	r, err := Run(t.Context(), Options{Addr: addr, PID: os.Getpid(), Ops: 10})
	if err != nil || !math.IsNaN(r.EachRSS) {
		t.Errorf("a crowd of nobody: %v, error %v", r.EachRSS, err)
	}
}

// waitingServer says that so many connections wait for any tube, and answers a
// reserve with this body.
func waitingServer(waiting uint64, body []byte) fakeServer {
	return func(cmd *wire.Command, out []byte) []byte {
		switch cmd.Op {
		case wire.Put:
			return wire.AppendInserted(out, 1)
		case wire.Reserve:
			return wire.AppendReserved(out, 1, body)
		case wire.StatsTube:
			return wire.AppendTubeStats(out, &wire.TubeStats{Waiting: waiting})
		}
		return wire.AppendWord(out, wire.UnknownCommand)
	}
}

func TestWorkersThatDoNotWait(t *testing.T) {
	addr := waitingServer(2, nil).start(t)
	for limit := 50 * time.Millisecond; ; limit *= 2 { // on a busy machine the steps before that take longer, too
		_, err := Run(t.Context(), Options{Addr: addr, Mix: Wake, Workers: 3, SetupLimit: limit})
		if !errors.Is(err, ErrTooSlow) || limit > time.Minute {
			t.Fatalf("error %v", err)
		}
		if strings.Contains(err.Error(), fmt.Sprintf("load: 2 of 3 workers wait in %v", limit)) {
			return
		}
	}
}

// A job that a worker gets must be one that a producer has just put.
func TestWorkersCheckWhoseJobTheyGot(t *testing.T) {
	ofTwo, ofThree := stamped(newBody(64), 1), stamped(newBody(64), 2)
	cut := ofTwo[:stampSize-1]
	wrong := append([]byte(nil), ofTwo...)
	wrong[stampSize]++
	for _, tt := range []struct {
		name string
		body []byte
		want string
	}{
		{"nobody's", ofThree, "load: unexpected reply to reserve"},
		{"cut", cut, "load: job 1 has a body of 3 bytes that is not the one of 64"},
		{"another body", wrong, "load: job 1 has a body of 64 bytes that is not the one of 64"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr := waitingServer(2, tt.body).start(t)
			_, err := Run(t.Context(), Options{Addr: addr, Mix: Wake, Connections: 2, Workers: 2})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// The load may be over before its connections have a loop.
func TestWakeThatIsOverAtOnce(t *testing.T) {
	o, err := Options{Addr: startResponder(t), Mix: Wake, Connections: 2, Workers: 5}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(o)
	defer r.hangUp()
	if err := r.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.phase.Store(int32(stopping))
	if err := r.drive(t.Context()); err != nil {
		t.Error(err)
	}
	if r.tally.commands != 0 {
		t.Errorf("%d commands were counted", r.tally.commands)
	}
}

// A producer has one job under way, however many workers wait.
func TestProducerPutsWhenItsJobIsDone(t *testing.T) {
	o, err := Options{Mix: Wake, Connections: 2, Workers: 3}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	sessions := newSessions(&o)
	if len(sessions) != 5 {
		t.Fatalf("%d sessions", len(sessions))
	}
	put, work := sessions[1], sessions[4]
	put.script.(*producer).quota = 2
	woken := false
	put.wake = func() { woken = true }
	said := func(s *session) string {
		s.fill(5, warming)
		out := string(s.out)
		s.out = s.out[:0]
		return out
	}
	hears := func(s *session, reply []byte) {
		t.Helper()
		s.in.add(copy(s.in.space(), reply))
		if err := s.replies(9, warming); err != nil {
			t.Fatal(err)
		}
	}
	body := stamped(newBody(64), 1)
	if got, want := said(put), string(wire.AppendPut(nil, putPri, 0, putTTR, body)); got != want {
		t.Fatalf("the producer said %q, want %q", got, want)
	}
	if got := said(work); got != "reserve\r\n" {
		t.Fatalf("the worker began with %q", got)
	}
	hears(put, wire.AppendInserted(nil, 7))
	if got := said(put); got != "" {
		t.Errorf("the producer said %q with its job under way", got)
	}
	hears(work, wire.AppendReserved(nil, 7, body))
	if got := said(work); got != "delete 7\r\nreserve\r\n" {
		t.Errorf("the worker said %q", got)
	}
	work.crew.proceed(9, warming)
	if got := said(put); got != "" || woken {
		t.Errorf("the producer said %q before its job is deleted", got)
	}
	hears(work, wire.AppendWord(nil, wire.Deleted))
	work.crew.proceed(9, warming)
	if got := string(put.out); !woken || got != string(wire.AppendPut(nil, putPri, 0, putTTR, body)) {
		t.Errorf("the delete made the producer say %q, woken %t", got, woken)
	}
}

// Workers are served in the order in which they came, however many have left.
func TestResponderWakesTheLongestWaiting(t *testing.T) {
	r := newResponder()
	var woken []int
	add := func(i int) {
		c := r.newConn()
		c.wake = func() { woken = append(woken, i) }
		c.cmd.Op = wire.Reserve
		c.execute()
	}
	producer := r.newConn()
	for i := range 100 {
		add(2 * i)
		add(2*i + 1)
		producer.cmd.Op = wire.Put
		producer.execute()
	}
	for i, got := range woken {
		if got != i {
			t.Fatalf("woken %v", woken)
		}
	}
	if n := len(r.tubes[defaultTube].waiting); len(woken) != 100 || n != 100 {
		t.Errorf("%d were woken, %d wait", len(woken), n)
	}
}
