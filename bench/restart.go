package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/client"
)

const (
	restartJobs = 1_000_000
	restartTube = "restart"
)

// restart puts jobs, kills the server, and starts it again. {dir} in the servers'
// commands is the directory of their jobs.
func restart(o *Options) Experiment {
	return Experiment{
		Name: fmt.Sprintf("Restart/%d jobs", o.jobs(restartJobs)),
		trial: func(ctx context.Context, t *trial) error {
			dir, err := os.MkdirTemp("", "beanpole-bench-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			return t.restart(ctx, dir)
		},
	}
}

func (t *trial) restart(ctx context.Context, dir string) error {
	n := t.jobs(restartJobs)
	var before float64 // bytes
	err := t.startIn(ctx, dir, func(ctx context.Context) error {
		if err := t.fill(ctx, restartTube, n); err != nil {
			return err
		}
		before = float64(load.UsageOf(t.PID).RSS)
		t.Kill()
		return nil
	})
	if err != nil {
		return err
	}
	size, err := diskUsage(dir)
	if err != nil {
		return err
	}
	began := time.Now()
	return t.startIn(ctx, dir, func(ctx context.Context) error {
		if err := t.seeJob(ctx); err != nil {
			return fmt.Errorf("look for the jobs after the restart: %w", err)
		}
		t.set(float64(time.Since(began)), "reply-ns")
		t.set(before, "RSS-before-bytes")
		t.set(float64(load.UsageOf(t.PID).PeakRSS), "peak-RSS-bytes")
		t.set(float64(size)/float64(n), "disk-bytes/job")
		return nil
	})
}

// seeJob waits until the server returns a job.
func (t *trial) seeJob(ctx context.Context) error {
	c, err := client.Dial(ctx, t.Addr, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	_, _, err = c.PeekTube(ctx, restartTube, client.StateReady)
	return err
}

// diskUsage returns the total size of the files in a directory, in bytes.
func diskUsage(dir string) (total int64, err error) {
	out, err := exec.Command("du", "-sb", dir).Output()
	if err == nil {
		_, err = fmt.Sscan(string(out), &total)
	}
	return total, err
}
