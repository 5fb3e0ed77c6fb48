package load

import (
	"slices"
	"time"
)

// A Side is all runs of one server, and their medians.
type Side struct {
	Name string   `json:"name"`
	Runs []Result `json:"runs"`

	// LeftOut says why the server was not run in all rounds; empty: it was.
	LeftOut string `json:"left_out,omitempty"`

	Throughput    float64       `json:"commands_per_second"`
	P50           time.Duration `json:"p50_ns"`
	P99           time.Duration `json:"p99_ns"`
	P999          time.Duration `json:"p999_ns"`
	CPUPerCommand time.Duration `json:"cpu_per_command_ns"`       // 0 if unknown
	PeakRSS       int64         `json:"peak_rss_bytes"`           // 0 if unknown
	CrowdEach     float64       `json:"crowd_rss_each,omitempty"` // bytes for each of the crowd; 0 if unknown

	// Baseline has the runs of the same server under the baseline, and ToBaseline
	// the ratios to them; nil if there was none.
	Baseline   *Side   `json:"baseline,omitempty"`
	ToBaseline *Ratios `json:"to_baseline,omitempty"`
}

func (s *Side) sum() {
	s.Throughput = medianOf(s.Runs, throughput)
	s.P50 = medianOf(s.Runs, func(r *Result) time.Duration { return r.Latency.P50 })
	s.P99 = medianOf(s.Runs, func(r *Result) time.Duration { return r.Latency.P99 })
	s.P999 = medianOf(s.Runs, func(r *Result) time.Duration { return r.Latency.P999 })
	s.CPUPerCommand = medianOf(s.Runs, cpuPerCommand)
	s.PeakRSS = medianOf(s.Runs, peakRSS)
	s.CrowdEach = medianOf(s.Runs, crowdEach)
	if s.Baseline != nil {
		s.Baseline.sum()
		to := ratiosOf(s.Runs, s.Baseline.Runs)
		s.ToBaseline = &to
	}
}

func throughput(r *Result) float64 { return r.Throughput }

func cpuPerCommand(r *Result) time.Duration {
	if r.Server == nil {
		return 0
	}
	return r.Server.CPUPerCommand
}

func peakRSS(r *Result) int64 {
	if r.Server == nil {
		return 0
	}
	return r.Server.PeakRSS
}

func crowdEach(r *Result) float64 {
	if r.Crowd == nil {
		return 0
	}
	return r.Crowd.RSSEach
}

// Ratios compare the runs of two sides, those of the same round with each
// other. Above 1 is better for the first in Throughput and worse in the others.
type Ratios struct {
	Throughput    Ratio `json:"throughput"`
	P50           Ratio `json:"p50"`
	P99           Ratio `json:"p99"`
	P999          Ratio `json:"p999"`
	CPUPerCommand Ratio `json:"cpu_per_command"`
}

// A Ratio is the ratio of each pair of runs, summed up. It is zero if there was
// nothing to divide by.
type Ratio struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// ratiosOf divides the figures of the runs by those of others.
func ratiosOf(runs, others []Result) Ratios {
	of := func(figure func(*Result) float64) Ratio {
		var all []float64
		for i := range min(len(runs), len(others)) {
			over, under := figure(&runs[i]), figure(&others[i])
			if over > 0 && under > 0 {
				all = append(all, over/under)
			}
		}
		return ratioOf(all)
	}
	return Ratios{
		Throughput:    of(throughput),
		P50:           of(func(r *Result) float64 { return float64(r.Latency.P50) }),
		P99:           of(func(r *Result) float64 { return float64(r.Latency.P99) }),
		P999:          of(func(r *Result) float64 { return float64(r.Latency.P999) }),
		CPUPerCommand: of(func(r *Result) float64 { return float64(cpuPerCommand(r)) }),
	}
}

// ratioOf sums ratios up.
func ratioOf(all []float64) Ratio {
	if len(all) == 0 {
		return Ratio{}
	}
	return Ratio{Median: median(all), Min: slices.Min(all), Max: slices.Max(all)}
}

func medianOf[T ~int64 | ~float64](runs []Result, figure func(*Result) T) T {
	all := make([]T, len(runs))
	for i := range runs {
		all[i] = figure(&runs[i])
	}
	return median(all)
}

// median returns the middle of all, or the mean of the two in the middle, or 0.
func median[T ~int64 | ~float64](all []T) T {
	all = slices.Sorted(slices.Values(all))
	n := len(all)
	if n == 0 {
		return 0
	}
	return (all[(n-1)/2] + all[n/2]) / 2
}
