package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/test/conformance"
)

// Each occupied tube gets a job, which stays in the tube during the load.
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

// runOnResponder returns when the run and the responder have ended.
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
		t.Errorf("error %v although a connection was closed", err)
	}
}
