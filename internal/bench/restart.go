package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/beanpole-mq/beanpole/internal/load"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

const (
	restartJobs = 1_000_000

	firstReply  = "time to the first reply"
	rssBefore   = "RSS before the crash"
	peakRestart = "peak RSS of the restart"
	peakToRSS   = "peak to RSS before"
	diskPerJob  = "disk for a job"
)

// Restart puts jobs of the given size, kills the server, and starts it again. The
// servers' commands have {dir} where they keep their jobs.
func Restart(o *Options, bodySize int) Experiment {
	return Experiment{
		Name:  "restart",
		Title: fmt.Sprintf("%s jobs, a crash, and a start", count(o.jobs(restartJobs))),
		figures: []Figure{
			{Name: firstReply, Unit: Nanoseconds},
			{Name: rssBefore, Unit: Bytes},
			{Name: peakRestart, Unit: Bytes},
			{Name: peakToRSS, Unit: Times},
			{Name: diskPerJob, Unit: Bytes},
		},
		cold: true,
		trial: func(ctx context.Context, t *trial) error {
			dir, err := os.MkdirTemp("", "beanpole-bench-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			if err := t.fillAndKill(ctx, dir, bodySize); err != nil {
				return err
			}
			return t.restart(ctx, dir)
		},
	}
}

// fillAndKill puts the jobs and kills the server.
func (t *trial) fillAndKill(ctx context.Context, dir string, bodySize int) error {
	n := t.jobs(restartJobs)
	p, err := t.server.startIn(ctx, dir)
	if err != nil {
		return err
	}
	t.Process = p
	err = t.bulk(ctx, load.Options{Mix: load.Put, Ops: n, BodySize: bodySize}, n)
	t.setRSS(rssBefore)
	if err := errors.Join(err, p.Kill()); err != nil {
		return err
	}
	size, err := diskUsage(dir)
	t.set(diskPerJob, float64(size)/float64(n))
	return err
}

// restart starts the server and waits until it shows a job.
func (t *trial) restart(ctx context.Context, dir string) error {
	began := time.Now()
	p, err := t.server.startIn(ctx, dir)
	if err != nil {
		return err
	}
	defer p.Stop()
	d, err := p.Dial(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err := d.Do(wire.AppendUse(nil, load.DefaultPrefix), wire.Using); err != nil {
		return err
	}
	if _, err := d.Do(wire.AppendPeekReady(nil), wire.Found); err != nil {
		return fmt.Errorf("look for the jobs after the restart: %w", p.why(err))
	}
	t.setTime(firstReply, time.Since(began))
	if u, ok := load.UsageOf(p.PID); ok {
		t.set(peakRestart, float64(u.PeakRSS))
		t.set(peakToRSS, float64(u.PeakRSS)/t.values[rssBefore])
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
