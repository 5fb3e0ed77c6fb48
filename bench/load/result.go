package load

import "time"

// A Result is what one run measured.
type Result struct {
	Options Options // with defaults filled in

	Commands   int64 // replies received while measuring
	Elapsed    time.Duration
	Throughput float64 // commands a second
	Latency    Latency

	// GeneratorCPU is the processor time that this process took meanwhile, user and
	// system, in steps of 10 ms.
	GeneratorCPU time.Duration

	// Of the server's process; 0 if Options.PID was not given or cannot be read.
	CPUPerCommand time.Duration
	PeakRSS       int64 // bytes, since it started

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
	}
	if res.Elapsed > 0 {
		res.Throughput = float64(res.Commands) / res.Elapsed.Seconds()
	}
	res.PeakRSS = sp.to.server.PeakRSS
	if res.Commands > 0 {
		res.CPUPerCommand = (sp.to.server.CPU - sp.from.server.CPU) / time.Duration(res.Commands)
	}
	return res
}
