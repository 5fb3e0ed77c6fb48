package binlog

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// smallLog returns a log with records of all kinds, about 600 bytes.
func smallLog() *builder {
	return build(7).
		full("mail", 1, stateReady, "abc\r\n").
		full("a", 2, stateDelayed, "\r\n").
		short(1, stateBuried).
		full("mail", 3, stateReserved, "0123456789\r\n").
		short(2, stateDeleted).
		full("b", 1, stateBuried, "abc\r\n").
		short(9, stateDelayed)
}

// FuzzRead reads a file with any bytes and then a valid file. Read invents no job and
// reports all skipped bytes, and its jobs survive Write and Read.
func FuzzRead(f *testing.F) {
	f.Add(smallLog().bytes)
	f.Add(smallLog().raw(zeros[:200]).bytes)
	files, err := filepath.Glob("testdata/*/binlog.*")
	if err != nil || len(files) < 4 {
		f.Fatalf("golden files %q, error %v", files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	next := build(7).full("next", 77, stateReady, "next\r\n").bytes

	f.Fuzz(func(t *testing.T, b []byte) {
		fsys := dirOf(t, b, next)
		eng, report := readEngine(t, fsys, "log", Options{})
		jobs := jobsOf(eng)
		if string(jobs[77].Body) != "next" {
			t.Error("the next file was not read")
		}
		for id, c := range jobs {
			if id != 77 && !(bytes.Contains(b, c.Body) && bytes.Contains(b, []byte(c.Tube))) {
				t.Errorf("job %d is invented", id)
			}
		}
		if skipped := len(report.Damage) > 0; !skipped && report.Records == 1 && len(b) >= headerSize && !isZero(b[headerSize:]) {
			t.Errorf("the report omits %d bytes", len(b))
		}

		other := dirOf(t)
		if _, err := Write(other, "log", Options{FileSize: 1000}, eng); err != nil {
			t.Fatal(err)
		}
		again, _ := readWhole(t, other, "log", Options{})
		if again.LastID() != eng.LastID() {
			t.Errorf("last id %d, then %d", eng.LastID(), again.LastID())
		}
		rewritten := jobsOf(again)
		for id, c := range jobs {
			if diff := cmp.Diff(asRead(c), rewritten[id]); diff != "" {
				t.Errorf("job %d (- read, + written and read):\n%s", id, diff)
			}
		}
		if len(jobs) != len(rewritten) {
			t.Errorf("%d jobs, then %d", len(jobs), len(rewritten))
		}
	})
}
