package binlog

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

// job1 returns a whole job with different values in all fields.
func job1(state engine.State, id uint64, due int64, body string) engine.Change {
	return engine.Change{
		Kind: engine.JobPut, State: state, ID: id, Pri: 5, Delay: 6, TTR: 7, Created: 8e9, Due: due,
		Reserves: 9, Timeouts: 10, Releases: 11, Buries: 12, Kicks: 13, Tube: "mail", Body: []byte(body), BodyLen: len(body),
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

// TestRoundTrip writes random jobs and reads them again.
func TestRoundTrip(t *testing.T) {
	chars := []byte("ABYZabyz0189+/;.$_()")
	rapid.Check(t, func(rt *rapid.T) {
		opt := Options{
			Epoch:    rapid.Int64Range(0, 1<<61).Draw(rt, "epoch"),
			FileSize: rapid.Int64Range(-1, 3000).Draw(rt, "file size"),
		}
		moment := rapid.Int64Range(-opt.Epoch, 1<<61)
		u32 := rapid.Uint32()
		tube := rapid.Custom(func(rt *rapid.T) string {
			return string(rapid.SampledFrom(chars).Draw(rt, "first")) + strings.Repeat("-", rapid.IntRange(0, 199).Draw(rt, "length"))
		})
		var jobs []engine.Change
		ids := rapid.SliceOfNDistinct(rapid.Uint64Range(1, engine.MaxSafeID), 0, 60, rapid.ID[uint64]).Draw(rt, "ids")
		ranks := rapid.Permutation(ids).Draw(rt, "ranks")
		for i, id := range ids {
			c := engine.Change{
				Kind: engine.JobPut, ID: id, Pri: u32.Draw(rt, "pri"), Delay: u32.Draw(rt, "delay"), TTR: max(1, u32.Draw(rt, "ttr")),
				Created: moment.Draw(rt, "created"), Reserves: u32.Draw(rt, "reserves"), Timeouts: u32.Draw(rt, "timeouts"),
				Releases: u32.Draw(rt, "releases"), Buries: u32.Draw(rt, "buries"), Kicks: u32.Draw(rt, "kicks"),
				Tube: tube.Draw(rt, "tube"), Body: rapid.SliceOfN(rapid.Byte(), 0, 400).Draw(rt, "body"),
				State: rapid.SampledFrom([]engine.State{engine.Ready, engine.Delayed, engine.Buried}).Draw(rt, "state"),
			}
			switch c.State {
			case engine.Delayed:
				c.Due = moment.Draw(rt, "due")
			case engine.Buried:
				c.Due = int64(ranks[i])
			}
			jobs = append(jobs, c)
		}
		last := rapid.Uint64Range(0, engine.MaxSafeID).Draw(rt, "last id")

		fsys := dirOf(rt)
		sum, err := Write(fsys, "log", opt, engineOf(append(slices.Clone(jobs), engine.Change{Kind: engine.LastID, ID: last})...))
		if err != nil {
			rt.Fatal(err)
		}
		for n := range sum.Files {
			size, err := fsys.Size("log/" + fileName(n+1))
			if err != nil {
				rt.Fatal(err)
			}
			sum.Bytes -= size
		}
		if sum.Jobs != len(jobs) || sum.Bytes != 0 {
			rt.Errorf("summary: %+v (bytes: less what the files have)", sum)
		}
		eng, report := readWhole(rt, fsys, "log", opt)
		if len(report.Files) != sum.Files {
			rt.Errorf("%d files read, %d written", len(report.Files), sum.Files)
		}
		got := jobsOf(eng)
		before := make(map[uint64]engine.Change)
		for _, c := range jobs {
			c.BodyLen = len(c.Body)
			before[c.ID] = c
			want, g := asRead(c), got[c.ID]
			if c.State == engine.Buried {
				want.Due, g.Due = 0, 0
			}
			if diff := cmp.Diff(want, g, cmp.Comparer(func(a, b []byte) bool { return string(a) == string(b) })); diff != "" {
				rt.Errorf("job %d (- written, + read):\n%s", c.ID, diff)
			}
		}
		if diff := cmp.Diff(buriedOrder(before), buriedOrder(got)); diff != "" || len(got) != len(jobs) {
			rt.Errorf("%d jobs of %d; order of buried ones (- written, + read):\n%s", len(got), len(jobs), diff)
		}
		for _, id := range ids {
			last = max(last, id)
		}
		if report.LastID != last {
			rt.Errorf("last id %d, want %d", report.LastID, last)
		}
	})
}

func TestWriteNothing(t *testing.T) {
	fsys := dirOf(t)
	sum, err := Write(fsys, "log", Options{}, engineOf())
	if names, _ := Files(fsys, "log"); len(names) > 0 || err != nil || sum != (Summary{}) {
		t.Errorf("files: %q, error: %v, summary: %+v", names, err, sum)
	}
}

// TestWriteLargeBodies has bodies that do not go through the buffer.
func TestWriteLargeBodies(t *testing.T) {
	fsys := dirOf(t)
	var jobs []engine.Change
	for id, size := range []int{3 * chunk, 10, chunk, chunk - 2, chunk + 1, 0} {
		jobs = append(jobs, job1(engine.Ready, uint64(id+1), 0, strings.Repeat(fmt.Sprint(id), size)))
	}
	if _, err := Write(fsys, "log", Options{}, engineOf(jobs...)); err != nil {
		t.Fatal(err)
	}
	changes, report := readChanges(t, fsys)
	if diff := cmp.Diff(append(jobs, engine.Change{Kind: engine.LastID, ID: 6}), changes,
		cmp.Comparer(func(a, b []byte) bool { return string(a) == string(b) })); diff != "" || report.Damaged() {
		t.Errorf("damage %q; (- want, + got):\n%.2000s", report.Damage(), diff)
	}
}

// TestWriteTimes: a file holds moments from 1970 on.
func TestWriteTimes(t *testing.T) {
	for _, tc := range []struct{ at, epoch, want int64 }{
		{5, 10, 15},
		{-5, 10, 5},
		{-11, 10, 0},
		{math.MinInt64, math.MaxInt64, 0},
		{math.MaxInt64, 10, math.MaxInt64}, // engine.Never
		{1, math.MaxInt64, math.MaxInt64},
	} {
		if got := wallTime(tc.at, tc.epoch); got != tc.want {
			t.Errorf("wallTime(%d, %d) = %d, want %d", tc.at, tc.epoch, got, tc.want)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	w := writer{fs: dirOf(t), dir: "log"}
	large := job1(engine.Ready, 1, 0, "")
	large.Body = make([]byte, maxBody-1)
	if err := w.put(&large); err == nil || !strings.Contains(err.Error(), "1073741823 bytes exceeds") {
		t.Errorf("error %v for a large body", err)
	}
	if _, err := Write(dirOf(t, nil, nil), "log", Options{}, engineOf(job1(engine.Ready, 1, 0, ""))); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v for a directory with files", err)
	}
}

// TestWriteFaults fails each call in turn: Write returns the error and removes its files.
func TestWriteFaults(t *testing.T) {
	eng := engineOf(job1(engine.Ready, 1, 0, "abc"), job1(engine.Buried, 2, 1, "def"), engine.Change{Kind: engine.LastID, ID: 3})
	opt := Options{FileSize: 1}
	count := faultfs.New(dirOf(t), faultfs.Fault{Op: faultfs.Any, N: math.MaxInt})
	if _, err := Write(count, "log", opt, eng); err != nil {
		t.Fatal(err)
	}
	if count.Seen() < 11 { // list and sync the directory; create, write and sync three files
		t.Fatalf("only %d calls seen", count.Seen())
	}
	for n := 1; n <= count.Seen(); n++ {
		for _, how := range []faultfs.How{faultfs.Before, faultfs.After} {
			fault := faultfs.Fault{Op: faultfs.Any, N: n, How: how, Err: syscall.ENOSPC}
			base := dirOf(t)
			_, err := Write(faultfs.New(base, fault), "log", opt, eng)
			if !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%v: error %v", fault, err)
			}
			// A file that was made in spite of the error is not known to be ours.
			if left, _ := Files(base, "log"); len(left) > 1 || len(left) == 1 && how == faultfs.Before {
				t.Errorf("%v: %q are left", fault, left)
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
