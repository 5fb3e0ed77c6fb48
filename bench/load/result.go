package load

import "time"

// A Result is what one run measured.
type Result struct {
	Options Options `json:"options"` // with defaults filled in

	Commands   int64         `json:"commands"` // replies received while measuring
	Elapsed    time.Duration `json:"elapsed_ns"`
	Throughput float64       `json:"commands_per_second"`
	Latency    Latency       `json:"latency"`

	// GeneratorCPU is the processor time that this process took meanwhile, user and
	// system, in steps of 10 ms.
	GeneratorCPU time.Duration `json:"generator_cpu_ns"`

	// Server is nil if Options.PID was not given or cannot be read.
	Server *ServerUsage `json:"server,omitempty"`

	// Crowd is nil if there was none, or if Server is nil.
	Crowd *CrowdUsage `json:"crowd,omitempty"`
}

// ServerUsage is what the kernel says of the server's process.
type ServerUsage struct {
	PID           int           `json:"pid"`
	CPU           time.Duration `json:"cpu_ns"` // user and system, while measuring; in steps of 10 ms
	CPUPerCommand time.Duration `json:"cpu_per_command_ns"`
	RSS           int64         `json:"rss_bytes"`      // at the end of the measurement
	PeakRSS       int64         `json:"peak_rss_bytes"` // since the process started
}

// A tally counts the replies that are received while measuring.
type tally struct {
	commands  int64
	last      int64 // when the last of them came, ns
	latencies *Recorder
}

// result sums up what was measured.
func (r *run) result(sp span) Result {
	t := &r.tally
	end := sp.to.at
	if sp.whole {
		end = max(sp.from.at, t.last)
	}
	res := Result{
		Options:      r.opt,
		Commands:     t.commands,
		Elapsed:      time.Duration(end - sp.from.at),
		Latency:      t.latencies.Latency(),
		GeneratorCPU: sp.to.self.CPU - sp.from.self.CPU,
		Crowd:        r.crowd.usage(),
	}
	if res.Elapsed > 0 {
		res.Throughput = float64(res.Commands) / res.Elapsed.Seconds()
	}
	if from, to := sp.from.server, sp.to.server; from.RSS > 0 && to.RSS > 0 {
		res.Server = &ServerUsage{
			PID:     r.opt.PID,
			CPU:     to.CPU - from.CPU,
			RSS:     to.RSS,
			PeakRSS: to.PeakRSS,
		}
		if res.Commands > 0 {
			res.Server.CPUPerCommand = res.Server.CPU / time.Duration(res.Commands)
		}
	}
	return res
}
