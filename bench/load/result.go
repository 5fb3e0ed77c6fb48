package load

import "time"

// A Result contains the measurements of a run.
type Result struct {
	Options Options // with all defaults

	Commands   int64 // number of replies received during the measurement
	Elapsed    time.Duration
	Throughput float64 // commands per second
	Latency    Latency

	// GeneratorCPU is the CPU time used by this process, user and system, in steps of 10
	// ms.
	GeneratorCPU time.Duration

	// CPU time of the server's process. It is 0 if Options.PID is 0 or the process cannot
	// be read.
	CPUPerCommand time.Duration
	PeakRSS       int64 // in bytes, since the server started

}

// A tally counts the replies received during the measurement.
type tally struct {
	commands  int64
	last      int64 // time of the last reply, in ns
	latencies *Recorder
}

// result computes the result of a measurement.
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
