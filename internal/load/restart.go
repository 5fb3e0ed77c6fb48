package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// RestartOptions describe a comparison of how soon two servers serve again
// after a crash. Their commands have {dir} where they keep their jobs.
type RestartOptions struct {
	A, B     Server
	Jobs     int64 // put before the crash; 0 means 1,000,000
	BodySize int   // bytes; 0 means 64, negative means empty
	Rounds   int   // crashes and restarts of each server, A and B in turn; 0 means 5
	Progress func(server string, took time.Duration)
}

// A Restart is what CompareRestart found.
type Restart struct {
	Jobs  int64       `json:"jobs"`
	A     RestartSide `json:"a"`
	B     RestartSide `json:"b"`
	Ratio Ratio       `json:"ratio"`          // of the times, B/A: below 1 is better for B
	Peak  Ratio       `json:"peak_rss_ratio"` // of the peaks of resident memory, B/A
}

// RestartSide has the figures of one server.
type RestartSide struct {
	Name        string          `json:"name"`
	Took        []time.Duration `json:"took_ns"` // from the start of the process to its first reply
	Median      time.Duration   `json:"median_ns"`
	BytesPerJob float64         `json:"disk_bytes_per_job"` // in its directory after the fill
	SteadyRSS   int64           `json:"steady_rss_bytes"`   // before the first crash; 0 if unknown
	Peaks       []int64         `json:"peaks_rss_bytes"`    // from the start of the process to its first reply; 0 if unknown
	PeakRSS     int64           `json:"peak_rss_bytes"`     // the median of these
	Overshoot   Ratio           `json:"peak_to_steady"`     // Peaks / SteadyRSS
}

// CompareRestart fills both servers with jobs, kills them, and starts each of
// them again and again on what it has left.
func CompareRestart(ctx context.Context, o RestartOptions) (Restart, error) {
	if o.Jobs == 0 {
		o.Jobs = 1_000_000
	}
	if o.Rounds == 0 {
		o.Rounds = defaultRounds
	}
	r := Restart{Jobs: o.Jobs, A: RestartSide{Name: o.A.DisplayName()}, B: RestartSide{Name: o.B.DisplayName()}}
	var dirs [2]string
	for i, run := range r.sides(&o) {
		dir, err := os.MkdirTemp("", "beanpole-bench-")
		if err != nil {
			return r, err
		}
		defer os.RemoveAll(dir)
		if err := run.side.fill(ctx, run.server, dir, &o); err != nil {
			return r, fmt.Errorf("%s: %w", run.side.Name, err)
		}
		dirs[i] = dir
	}
	for range o.Rounds {
		for i, run := range r.sides(&o) {
			took, err := run.side.restart(ctx, run.server, dirs[i])
			if err != nil {
				return r, fmt.Errorf("%s: %w", run.side.Name, err)
			}
			if o.Progress != nil {
				o.Progress(run.side.Name, took)
			}
		}
	}
	r.sum()
	return r, nil
}

type restartRun struct {
	server *Server
	side   *RestartSide
}

func (r *Restart) sides(o *RestartOptions) [2]restartRun {
	return [2]restartRun{{&o.A, &r.A}, {&o.B, &r.B}}
}

// fill puts the jobs and kills the server.
func (s *RestartSide) fill(ctx context.Context, server *Server, dir string, o *RestartOptions) error {
	p, err := server.startIn(ctx, dir)
	if err != nil {
		return err
	}
	_, err = Run(ctx, Options{Addr: p.Addr, Mix: Put, Ops: o.Jobs, BodySize: o.BodySize, Connections: 8, InFlight: 64})
	s.SteadyRSS = readUsage(p.PID).rss
	if err := errors.Join(err, p.Kill()); err != nil {
		return err
	}
	bytes, err := diskUsage(dir)
	s.BytesPerJob = float64(bytes) / float64(o.Jobs)
	return err
}

// restart starts the server, waits for its first reply, and kills it.
func (s *RestartSide) restart(ctx context.Context, server *Server, dir string) (time.Duration, error) {
	began := time.Now()
	p, err := server.startIn(ctx, dir)
	if err != nil {
		return 0, err
	}
	err = p.awaitJob(ctx)
	took := time.Since(began)
	s.Took = append(s.Took, took)
	s.Peaks = append(s.Peaks, readUsage(p.PID).peak)
	return took, errors.Join(err, p.Kill())
}

// awaitJob returns when the server shows a job that was put before.
func (p *Process) awaitJob(ctx context.Context) error {
	d, err := p.Dial(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err := d.Do(wire.AppendUse(nil, defaultPrefix), wire.Using); err != nil {
		return err
	}
	if _, err := d.Do(wire.AppendPeekReady(nil), wire.Found); err != nil {
		return fmt.Errorf("load: look for the jobs after the restart: %w", errors.Join(err, p.Died()))
	}
	return nil
}

// diskUsage returns the sizes of all files in a directory, in bytes.
func diskUsage(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}

func (r *Restart) sum() {
	r.A.sum()
	r.B.sum()
	r.Ratio = ratioOfPairs(r.B.Took, r.A.Took)
	r.Peak = ratioOfPairs(r.B.Peaks, r.A.Peaks)
}

func (s *RestartSide) sum() {
	s.Median = median(s.Took)
	s.PeakRSS = median(s.Peaks)
	s.Overshoot = ratioOfPairs(s.Peaks, slices.Repeat([]int64{s.SteadyRSS}, len(s.Peaks)))
}

// ratioOfPairs sums up the quotients of the figures that belong together. Where
// there is nothing to divide by, there is none.
func ratioOfPairs[T ~int64](over, under []T) Ratio {
	var all []float64
	for i := range min(len(over), len(under)) {
		if under[i] > 0 {
			all = append(all, float64(over[i])/float64(under[i]))
		}
	}
	return ratioOf(all)
}

// rows are those of a table: its head, the servers, the ratios B/A.
func (r *Restart) rows() [][]string {
	return [][]string{
		{thousands(float64(r.Jobs)) + " jobs", "time to first reply", "RSS before the crash", "peak RSS of the restart", "peak / before", "disk bytes per job"},
		r.A.cells(),
		r.B.cells(),
		{"ratio (min..max)", r.Ratio.String(), "", r.Peak.String(), "", ""},
	}
}

func (s *RestartSide) cells() []string {
	return []string{
		s.Name,
		fmt.Sprintf("%.2f s", s.Median.Seconds()),
		orDash(s.SteadyRSS, mebibytes),
		orDash(s.PeakRSS, mebibytes),
		s.Overshoot.String(),
		fmt.Sprintf("%.0f", s.BytesPerJob),
	}
}

// WriteTable writes r for people.
func (r *Restart) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, cells := range r.rows() {
		fmt.Fprintf(t, "%s\t\n", strings.Join(cells, "\t"))
	}
	return t.Flush()
}

// WriteMarkdown writes r as a table in Markdown.
func (r *Restart) WriteMarkdown(w io.Writer) error {
	var sb strings.Builder
	for i, cells := range r.rows() {
		fmt.Fprintf(&sb, "| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			fmt.Fprintf(&sb, "|%s\n", strings.Repeat("---|", len(cells)))
		}
	}
	_, err := io.WriteString(w, sb.String())
	return err
}
