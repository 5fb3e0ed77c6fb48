package load

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// BenchmarkClients compares the generator's clients with each other, on the
// responder (whose figures are the ceiling) and on beanstalkd, each in a process
// of its own. An op is a job: three commands. The processor times are per
// command and tell more than the throughput when the machine is busy otherwise:
//
//	go test ./internal/load -run '^$' -bench Clients -count 3
func BenchmarkClients(b *testing.B) {
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	b.Setenv(responderEnv, "1")
	servers := []Server{{Name: "responder", Command: []string{exe, "127.0.0.1:{port}"}}}
	if path, err := exec.LookPath("beanstalkd"); err == nil {
		servers = append(servers, Server{Command: []string{path, "-l", "127.0.0.1", "-p", "{port}"}})
	}
	for _, s := range servers {
		p, err := s.Start(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		defer p.Stop()
		for _, shape := range []struct{ connections, inFlight int }{{1, 1}, {8, 1}, {50, 1}, {500, 1}, {8, 64}} {
			for _, client := range clients() {
				o := Options{Addr: p.Addr, PID: p.PID, Client: client, Connections: shape.connections, InFlight: shape.inFlight}
				b.Run(fmt.Sprintf("server=%s/conns=%d/inflight=%d/client=%s", s.DisplayName(), o.Connections, o.InFlight, client),
					func(b *testing.B) { benchmarkRun(b, o) })
			}
		}
	}
}

func benchmarkRun(b *testing.B, o Options) {
	o.Ops = int64(b.N)
	r, err := Run(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(r.Throughput, "commands/s")
	b.ReportMetric(float64(r.Latency.P50)/1e3, "p50-us")
	b.ReportMetric(float64(r.Latency.P99)/1e3, "p99-us")
	b.ReportMetric(float64(r.GeneratorCPU)/float64(r.Commands)/1e3, "generator-us/command")
	if r.Server != nil {
		b.ReportMetric(float64(r.Server.CPU)/float64(r.Commands)/1e3, "server-us/command")
	}
}
