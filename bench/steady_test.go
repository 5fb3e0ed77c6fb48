package bench

import (
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// The clients are measured twice by one process, leave no job, and fail with their server.
func TestSteadyClients(t *testing.T) {
	s := beanpole()
	p, err := s.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	clients, err := StartSteady(t.Context(), p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := clients.Begin(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		r, err := clients.End()
		if err != nil {
			t.Fatal(err)
		}
		if l := r.Latency; l.Count < 3*interactiveClients || l.P50 <= 0 || l.P99 < l.P50 || r.Throughput <= 0 {
			t.Errorf("what was measured: %+v, %v commands/s", l, r.Throughput)
		}
	}
	d, err := load.Dial(t.Context(), p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if stats, err := d.Stats(wire.AppendStatsCommand(nil)); err != nil || stats["total-jobs"] == "0" || stats["current-jobs-ready"] != "0" {
		t.Errorf("statistics afterwards: %v, %v", stats, err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := clients.Begin(); err != nil {
		t.Fatal(err)
	}
	if r, err := clients.End(); err == nil {
		t.Errorf("without a server: %+v", r)
	}
	if err := clients.Close(); err == nil {
		t.Error("the process of clients without a server has succeeded")
	}
}
