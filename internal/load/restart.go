package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
	Ratio Ratio       `json:"ratio"` // of the times, B/A: below 1 is better for B
}

// RestartSide has the figures of one server.
type RestartSide struct {
	Name        string          `json:"name"`
	Took        []time.Duration `json:"took_ns"` // from the start of the process to its first reply
	Median      time.Duration   `json:"median_ns"`
	BytesPerJob float64         `json:"disk_bytes_per_job"` // in its directory after the fill
	PeakRSS     int64           `json:"peak_rss_bytes"`     // of the last restart; 0 if unknown
	SteadyRSS   int64           `json:"steady_rss_bytes"`   // before the first crash; 0 if unknown
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
	r := Restart{Jobs: o.Jobs, A: RestartSide{Name: o.A.name()}, B: RestartSide{Name: o.B.name()}}
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
	_, err = Run(ctx, Options{Addr: p.addr, Mix: Put, Ops: o.Jobs, BodySize: o.BodySize, Connections: 8, InFlight: 64})
	s.SteadyRSS = readUsage(p.pid).rss
	if err := errors.Join(err, p.kill()); err != nil {
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
	s.PeakRSS = readUsage(p.pid).peak
	return took, errors.Join(err, p.kill())
}

// awaitJob returns when the server shows a job that was put before.
func (p *process) awaitJob(ctx context.Context) error {
	nc, err := dialServer(ctx, p.addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	if _, err := nc.Write(append(wire.AppendUse(nil, defaultPrefix), wire.AppendPeekReady(nil)...)); err != nil {
		return err
	}
	var in []byte
	for seen := 0; ; {
		var r wire.Reply
		n, err := wire.ParseReply(in, &r)
		switch {
		case err != nil:
			return err
		case n > 0 && seen == 0:
			seen++
			in = in[n:]
			continue
		case n > 0 && r.Kind == wire.Found:
			return nil
		case n > 0:
			return fmt.Errorf("load: the jobs are not there after the restart: %v", r.Kind)
		}
		piece := make([]byte, 64<<10)
		k, err := nc.Read(piece)
		in = append(in, piece[:k]...)
		if err != nil {
			return fmt.Errorf("load: wait for the first reply: %w%s", err, p.output.quoted())
		}
	}
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
	r.A.Median, r.B.Median = median(r.A.Took), median(r.B.Took)
	ratios := make([]float64, len(r.A.Took))
	for i := range ratios {
		ratios[i] = float64(r.B.Took[i]) / float64(r.A.Took[i])
	}
	r.Ratio = ratioOf(ratios)
}

// WriteTable writes r for people.
func (r *Restart) WriteTable(w io.Writer) error {
	var sb strings.Builder
	fmt.Fprintf(&sb, "restart with %s jobs\n", thousands(float64(r.Jobs)))
	t := tabwriter.NewWriter(&sb, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\ttime to first reply\tpeak RSS\tRSS before\tdisk bytes per job\t")
	for _, s := range []*RestartSide{&r.A, &r.B} {
		fmt.Fprintf(t, "%s\t%s\t\n", s.Name, strings.Join(s.cells(), "\t"))
	}
	t.Flush() // a Builder takes everything
	fmt.Fprintf(&sb, "ratio of the times: %s\n", r.Ratio)
	_, err := io.WriteString(w, sb.String())
	return err
}

// WriteMarkdown writes r as a table in Markdown.
func (r *Restart) WriteMarkdown(w io.Writer) error {
	var sb strings.Builder
	fmt.Fprintf(&sb, "| %s jobs | time to first reply | peak RSS | RSS before the crash | disk bytes per job |\n|---|---|---|---|---|\n", thousands(float64(r.Jobs)))
	for _, s := range []*RestartSide{&r.A, &r.B} {
		fmt.Fprintf(&sb, "| %s | %s |\n", s.Name, strings.Join(s.cells(), " | "))
	}
	fmt.Fprintf(&sb, "| ratio (min..max) | %s | | | |\n", r.Ratio)
	_, err := io.WriteString(w, sb.String())
	return err
}

func (s *RestartSide) cells() []string {
	return []string{
		fmt.Sprintf("%.2f s", s.Median.Seconds()),
		orDash(s.PeakRSS, mebibytes),
		orDash(s.SteadyRSS, mebibytes),
		fmt.Sprintf("%.0f", s.BytesPerJob),
	}
}
