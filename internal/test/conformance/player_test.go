package conformance

import (
	"errors"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/test/exectest"
)

// A failed transcript is played again only if the machine was late, and only a limited
// number of times.
func TestInsist(t *testing.T) {
	const inTime, late = 0, tooLate
	wrong := errors.New("wrong")
	type result struct {
		late time.Duration
		err  error
	}
	for name, tc := range map[string]struct {
		chances int
		results []result
		want    error
	}{
		"right":                  {1, []result{{inTime, nil}}, nil},
		"wrong one time of two":  {1, []result{{inTime, wrong}}, wrong},
		"busy, then right":       {1, []result{{late, wrong}, {late, wrong}, {late, nil}}, nil},
		"busy, then wrong":       {1, []result{{late, wrong}, {inTime, wrong}}, wrong},
		"busy however often":     {1, slices.Repeat([]result{{late, wrong}}, attempts), wrong},
		"another chance":         {2, []result{{inTime, wrong}, {late, wrong}, {inTime, nil}}, nil},
		"no chance after others": {2, []result{{inTime, wrong}, {late, wrong}, {inTime, wrong}}, wrong},
	} {
		t.Run(name, func(t *testing.T) {
			played := 0
			err := insist(tc.chances, func() (time.Duration, error) {
				r := tc.results[played]
				played++
				return r.late, r.err
			})
			if err != tc.want || played != len(tc.results) {
				t.Errorf("%v after %d of %d attempts", err, played, len(tc.results))
			}
		})
	}
}

// If a server waits for a processor, the machine counts as late, even if this process is
// on time.
func TestDelayed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the kernel does not report the waiting times of threads")
	}
	var in processInstance
	for range 1 + runtime.NumCPU() {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		defer cmd.Process.Kill()
		in.Process = &exectest.Process{Cmd: cmd}
	}
	in.before = in.waited()
	late, err := timed(func() ([]Instance, error) {
		for in.delayed() < tooLate {
			time.Sleep(tick)
		}
		return []Instance{&in}, nil
	})
	if err != nil || late < tooLate {
		t.Errorf("%v late, %v", late, err)
	}
}
