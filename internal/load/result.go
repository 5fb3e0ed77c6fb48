package load

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
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
func (r *run) sum(res *Result, conns []*conn, sp span) {
	end, byOp := sp.to, byCommand{}
	if sp.whole {
		end = sp.from
	}
	for _, c := range conns {
		t := &c.s.tally
		t.flush()
		t.byOp.mergeInto(byOp)
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
	res.ByCommand = byOp.latencies()
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

func latencyOf(h *hdrhistogram.Histogram) Latency {
	if h.TotalCount() == 0 {
		return Latency{}
	}
	at := func(percentile float64) time.Duration { return time.Duration(h.ValueAtPercentile(percentile)) }
	return Latency{
		Count: h.TotalCount(),
		Mean:  time.Duration(h.Mean()),
		P50:   at(50),
		P90:   at(90),
		P99:   at(99),
		P999:  at(99.9),
		Max:   time.Duration(h.Max()),
	}
}

// String is a report of a few lines for people.
func (r Result) String() string {
	var b strings.Builder
	o := &r.Options
	fmt.Fprintf(&b, "%s, %s client\n", o.describe(), o.Client)
	fmt.Fprintf(&b, "  throughput  %s commands/s (%d in %v)\n", thousands(r.Throughput), r.Commands, r.Elapsed.Round(time.Millisecond))
	l := &r.Latency
	fmt.Fprintf(&b, "  latency     p50 %s  p90 %s  p99 %s  p99.9 %s  max %s\n",
		micros(l.P50), micros(l.P90), micros(l.P99), micros(l.P999), micros(l.Max))
	if s := r.Server; s != nil {
		fmt.Fprintf(&b, "  server      %s CPU per command, %.0f%% of a core, RSS %s, peak %s\n",
			micros(s.CPUPerCommand), percent(s.CPU, r.Elapsed), mebibytes(s.RSS), mebibytes(s.PeakRSS))
	}
	if c := r.Crowd; c != nil {
		fmt.Fprintf(&b, "  crowd       RSS %s before it came, %s with it: %s each\n",
			mebibytes(c.RSSBefore), mebibytes(c.RSSWith), bytesEach(c.RSSEach))
	}
	fmt.Fprintf(&b, "  generator   %.0f%% of a core\n", percent(r.GeneratorCPU, r.Elapsed))
	if r.Errors > 0 {
		fmt.Fprintf(&b, "  FAILED      %s\n", plural(int(r.Errors), "connection"))
	}
	return b.String()
}

func percent(part, whole time.Duration) float64 {
	if whole <= 0 {
		return 0
	}
	return 100 * part.Seconds() / whole.Seconds()
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// micros prints d in the unit people compare latencies in.
func micros(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	case d >= 100*time.Microsecond:
		return fmt.Sprintf("%.0f us", float64(d)/1e3)
	}
	return fmt.Sprintf("%.2f us", float64(d)/1e3)
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// bytesEach prints a mean of few or of some thousand bytes.
func bytesEach(mean float64) string {
	if math.Abs(mean) < 1<<10 {
		return fmt.Sprintf("%.0f B", mean)
	}
	return fmt.Sprintf("%.1f KiB", mean/(1<<10))
}

// thousands prints 1234567.8 as 1,234,568.
func thousands(f float64) string {
	s := fmt.Sprintf("%.0f", math.Round(f))
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
