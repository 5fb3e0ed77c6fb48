package binlog

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

// job1 returns a complete job with a different value in each field.
func job1(state engine.State, id uint64, due int64, body string) engine.Change {
	return engine.Change{
		Kind: engine.JobPut, State: state, ID: id, Pri: 5, Delay: 6, TTR: 7, Created: 8e9, Due: due,
		Counts: engine.Counts{Reserves: 9, Timeouts: 10, Releases: 11, Buries: 12, Kicks: 13}, Tube: "mail", Body: []byte(body), BodyLen: len(body),
	}
}

// asRead returns a written job as Read returns it: Write decrements the buries, because
// beanstalkd increments them.
func asRead(c engine.Change) engine.Change {
	if c.State == engine.Buried {
		c.Buries = max(c.Buries, 1) - 1
	}
	return c
}

// If any call fails, Write returns the error.
func TestWriteFaults(t *testing.T) {
	eng := engineOf(job1(engine.Ready, 1, 0, "abc"), job1(engine.Buried, 2, 1, "def"), engine.Change{Kind: engine.LastID, ID: 3})
	opt := Options{FileSize: 1}
	count := faultfs.New(dirOf(t), faultfs.Fault{Op: faultfs.Any, N: math.MaxInt})
	if _, err := Write(count, "log", opt, eng); err != nil {
		t.Fatal(err)
	}
	if count.Seen() < 10 { // sync of the directory; create, write and sync of 3 files
		t.Fatalf("only %d calls seen", count.Seen())
	}
	for n := 1; n <= count.Seen(); n++ {
		for _, how := range []faultfs.How{faultfs.Before, faultfs.After} {
			fault := faultfs.Fault{Op: faultfs.Any, N: n, How: how, Err: syscall.ENOSPC}
			if _, err := Write(faultfs.New(dirOf(t), fault), "log", opt, eng); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%v: error %v", fault, err)
			}
		}
	}
}

// TestWriteDurable cuts the power after Write has returned.
func TestWriteDurable(t *testing.T) {
	fsys := memfs.New()
	if err := errors.Join(fsys.Mkdir("log"), fsys.SyncDir(".")); err != nil {
		t.Fatal(err)
	}
	var jobs []engine.Change
	for id := range uint64(50) {
		jobs = append(jobs, job1(engine.Ready, id+1, 0, strings.Repeat("x", int(id))))
	}
	if _, err := Write(fsys, "log", Options{FileSize: 1000}, engineOf(jobs...)); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(100) {
		eng, _ := readWhole(t, fsys.Crash(rand.New(rand.NewPCG(seed, 0))), "log", Options{})
		if n := len(jobsOf(eng)); n != len(jobs) {
			t.Fatalf("seed %d: %d jobs of %d after a power cut", seed, n, len(jobs))
		}
	}
}
