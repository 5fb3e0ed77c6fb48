package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// A Result is what one run measured.
type Result struct {
	Options Options `json:"options"` // with defaults filled in

	Commands   int64         `json:"commands"` // replies received while measuring
	Elapsed    time.Duration `json:"elapsed_ns"`
	Throughput float64       `json:"commands_per_second"`
	Latency    Latency       `json:"latency"`

	// ByCommand has the latencies by the names of the commands, such as "put". It
	// is nil unless Options.ByCommand was set.
	ByCommand map[string]Latency `json:"latency_by_command,omitempty"`

	// Errors is the number of connections that failed. The first failure ends a
	// run, and Run then returns it as an error too.
	Errors int64 `json:"errors"`

	// GeneratorCPU is the processor time that this process took meanwhile, user and system.
	GeneratorCPU time.Duration `json:"generator_cpu_ns"`

	// Server is nil if Options.PID was not given or cannot be read.
	Server *ServerUsage `json:"server,omitempty"`

	// Crowd is nil if there was none, or if Server is nil.
	Crowd *CrowdUsage `json:"crowd,omitempty"`
}

// Latency is a distribution of times from a command's write to its reply's
// read; with Wake, from a put's write to the read of the RESERVED that it caused.
// The values have three significant digits.
type Latency struct {
	Count int64         `json:"count"`
	Mean  time.Duration `json:"mean_ns"`
	P50   time.Duration `json:"p50_ns"`
	P90   time.Duration `json:"p90_ns"`
	P99   time.Duration `json:"p99_ns"`
	P999  time.Duration `json:"p999_ns"`
	Max   time.Duration `json:"max_ns"`
}

// ServerUsage is what the kernel says of the server's process.
type ServerUsage struct {
	PID           int           `json:"pid"`
	CPU           time.Duration `json:"cpu_ns"` // user and system, while measuring; in steps of 10 ms
	CPUPerCommand time.Duration `json:"cpu_per_command_ns"`
	RSS           int64         `json:"rss_bytes"`      // at the end of the measurement
	PeakRSS       int64         `json:"peak_rss_bytes"` // since the process started
}

// sum makes the result out of what clients and conductor have left.
func (r *run) sum(res *Result, sp span) {
	end, byOp := sp.to, map[wire.Op]*hdrhistogram.Histogram{}
	if sp.whole {
		end = sp.from
	}
	for _, s := range r.sessions {
		t := &s.tally
		t.flush()
		for op, h := range t.byOp {
			if byOp[op] == nil {
				byOp[op] = newHistogram()
			}
			byOp[op].Merge(h)
		}
		res.Commands += t.commands
		if sp.whole {
			end = max(end, t.last)
		}
	}
	res.Elapsed = time.Duration(end - sp.from)
	if res.Elapsed > 0 {
		res.Throughput = float64(res.Commands) / res.Elapsed.Seconds()
	}
	all := newHistogram()
	for _, h := range r.hists {
		all.Merge(h)
	}
	res.Latency = latencyOf(all)
	if r.opt.ByCommand {
		res.ByCommand = make(map[string]Latency, len(byOp))
		for op, h := range byOp {
			res.ByCommand[op.String()] = latencyOf(h)
		}
	}
	res.GeneratorCPU = sp.client[1] - sp.client[0]
	if before, after := sp.server[0], sp.server[1]; before.ok && after.ok {
		res.Server = &ServerUsage{
			PID:     r.opt.PID,
			CPU:     after.cpu - before.cpu,
			RSS:     after.rss,
			PeakRSS: after.peak,
		}
		if res.Commands > 0 {
			res.Server.CPUPerCommand = res.Server.CPU / time.Duration(res.Commands)
		}
	}
}
