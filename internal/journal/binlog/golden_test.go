package binlog

import (
	"crypto/sha256"
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

var update = flag.Bool("update", false, "rewrite the expected output in testdata, and the files that Write makes")

var goldenSnapshot = []engine.Change{
	job1(engine.Ready, 1, 0, "ready"), job1(engine.Buried, 2, 9, "buried later"), job1(engine.Buried, 3, 8, "buried"),
	job1(engine.Delayed, 4, 50e9, "delayed"), {Kind: engine.LastID, ID: 6},
}

// writeGolden writes the files of testdata/written.
func writeGolden(t *testing.T, dir string) {
	t.Helper()
	_, err := Write(vfs.OS, dir, Options{Epoch: 1e18, FileSize: 500}, engineOf(goldenSnapshot...))
	if err != nil {
		t.Fatal(err)
	}
}

// Read returns the jobs of each directory in testdata that want.txt lists. beanstalkd
// 1.12 wrote the files of v7-*; kill -9 stopped it:
//
//   - v7-records has each kind of record, in one file with its zero fill;
//   - v7-compacted has lost its first files: beanstalkd has copied the jobs;
//   - v7-largest has a job of the largest size, at which beanstalkd itself stops reading,
//     and jobs that were buried in another order than they were put.
func TestGolden(t *testing.T) {
	for _, name := range []string{"v7-records", "v7-compacted", "v7-largest", "written"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("testdata", name)
			got := describe(t, dir)
			if *update {
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

// Write writes the bytes of testdata/written.
func TestGoldenWritten(t *testing.T) {
	dir, fresh := filepath.Join("testdata", "written"), t.TempDir()
	writeGolden(t, fresh)
	for _, file := range []string{"binlog.1", "binlog.2"} {
		got, err := os.ReadFile(filepath.Join(fresh, file))
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			writeFile(t, filepath.Join(dir, file), got)
		}
		want, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(want, got) {
			t.Errorf("%s has the bytes\n%x, want\n%x", file, got, want)
		}
	}
	if names, err := Files(vfs.OS, fresh); len(names) != 2 || err != nil {
		t.Errorf("files %q, error %v", names, err)
	}
}

func writeFile(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// describe returns the changes and the report of Read for a directory, one per line.
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
			fmt.Fprintf(&s, " tube=%s body=%.99q", c.Tube, c.Body)
			if len(c.Body) > 99 {
				fmt.Fprintf(&s, " of %d bytes, sha256 %x", len(c.Body), sha256.Sum256(c.Body))
			}
		}
		fmt.Fprintf(&s, "\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&s, "files=%d records=%d\n", report.Files, report.Records)
	for _, line := range report.Damage {
		fmt.Fprintf(&s, "damage: %s\n", line)
	}
	return s.String()
}
