package binlog

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// With -record, TestGolden makes testdata again, for which it needs a beanstalkd.
var record = flag.Bool("record", false, "make the golden files")

// golden has a function for each directory of testdata that makes its files in
// another one.
var golden = map[string]func(t *testing.T, dir string){
	// beanstalkd 1.12: each kind of record in one file, with its zero fill.
	"v7-records": func(t *testing.T, dir string) {
		b := startBeanstalkd(t, dir, "-s", "4096")
		b.put("default", 0, 0, 60, []byte("ready"))
		b.put("mail", 4294967295, 3600, 4294967295, []byte("delayed"))
		b.put(strings.Repeat("x", 200), 1, 4294967295, 1, nil)
		for _, id := range []int{3, 1} {
			b.must("RESERVED", "reserve-job %d", id)
			b.must("BURIED", "bury %d 77", id)
		}
		b.must("KICKED", "kick-job 3")
		b.must("RESERVED", "reserve-job 3")
		b.must("RELEASED", "release 3 88 99")
		b.must("DELETED", "delete %d", b.put("default", 0, 0, 60, []byte("deleted")))
		b.kill()
	},
	// beanstalkd 1.12: the first files are gone, jobs were copied.
	"v7-compacted": func(t *testing.T, dir string) {
		d := drive(startBeanstalkd(t, dir, "-s", "4096"), 3)
		for range 300 {
			if len(d.ids) > 12 {
				d.delete(d.rng.IntN(len(d.ids)))
			} else if d.rng.IntN(3) == 0 {
				d.putJob(20)
			} else {
				d.change()
			}
		}
		if d.stat("binlog-records-migrated") == 0 {
			t.Error("nothing was copied")
		}
		d.kill()
	},
	// By Write, so that what it writes does not change by accident.
	"written": func(t *testing.T, dir string) {
		_, err := Write(vfs.OS, dir, Options{Epoch: 1e18, FileSize: 500}, engineOf(goldenSnapshot...))
		if err != nil {
			t.Fatal(err)
		}
	},
}

var goldenSnapshot = []engine.Change{
	job1(engine.Ready, 1, 0, "ready"), job1(engine.Buried, 2, 9, "buried later"), job1(engine.Buried, 3, 8, "buried"),
	job1(engine.Delayed, 4, 50e9, "delayed"), {Kind: engine.LastID, ID: 6},
}

func TestGolden(t *testing.T) {
	for name, produce := range golden {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("testdata", name)
			if *record {
				fresh := t.TempDir()
				produce(t, fresh)
				adopt(t, dir, fresh)
			}
			got := describe(t, dir)
			if *record {
				writeFile(t, filepath.Join(dir, "want.txt"), []byte(got))
			}
			want, err := os.ReadFile(filepath.Join(dir, "want.txt"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(- want, + got):\n%s", diff)
			}
		})
	}
}

// TestGoldenMade compares the golden files that Write has made with what it makes today.
func TestGoldenMade(t *testing.T) {
	dir, fresh := filepath.Join("testdata", "written"), t.TempDir()
	golden["written"](t, fresh)
	for _, file := range []string{"binlog.1", "binlog.2"} {
		want, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(fresh, file))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(want, got) {
			t.Errorf("%s has other bytes:\n%x, want\n%x", file, got, want)
		}
	}
	if made, err := Files(vfs.OS, fresh); len(made) != 2 || err != nil {
		t.Errorf("files %q, error %v", made, err)
	}
}

// adopt replaces the files of a golden directory.
func adopt(t *testing.T, dir, fresh string) {
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	names, err := Files(vfs.OS, fresh)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(fresh, name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, name), b)
	}
}

func writeFile(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// describe returns all that Read says of a directory, a line each.
func describe(t *testing.T, dir string) string {
	var s strings.Builder
	report, err := Read(vfs.OS, dir, Options{}, func(c engine.Change) error {
		kind := [...]string{engine.JobPut: "put", engine.JobState: "state", engine.JobDeleted: "deleted", engine.LastID: "last-id"}[c.Kind]
		fmt.Fprintf(&s, "%s %d", kind, c.ID)
		if c.Kind == engine.JobPut || c.Kind == engine.JobState {
			fmt.Fprintf(&s, " %v pri=%d delay=%d ttr=%d created=%d due=%d counts=%d,%d,%d,%d,%d", c.State, c.Pri, c.Delay, c.TTR,
				c.Created, c.Due, c.Reserves, c.Timeouts, c.Releases, c.Buries, c.Kicks)
		}
		if c.Kind == engine.JobPut {
			fmt.Fprintf(&s, " tube=%s body=%q", c.Tube, c.Body)
		}
		fmt.Fprintf(&s, "\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Files {
		fmt.Fprintf(&s, "%s version=%d size=%d read=%d records=%d\n", f.Name, f.Version, f.Size, f.Read, f.Records)
	}
	for _, line := range report.Damage() {
		fmt.Fprintf(&s, "damage: %s\n", line)
	}
	return s.String()
}
