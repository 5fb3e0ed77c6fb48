package wal

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata")

// files returns the contents of all files but the lock.
func files(t testing.TB, fsys vfs.FS) map[string][]byte { return filesIn(t, fsys, testDir) }

// salvageDir is the directory in which salvaged creates its log. It is inside testDir.
const salvageDir = testDir + "salvaged/"

func salvaged(fsys vfs.FS) ([]Damage, error) {
	if err := fsys.(*memfs.FS).Mkdir(testDir + "salvaged"); err != nil {
		return nil, err
	}
	_, damage, err := Salvage(fsys, testDir, salvageDir, Options{SegmentSize: 512, LogID: 8})
	return damage, err
}

func filesIn(t testing.TB, fsys vfs.FS, dir string) map[string][]byte {
	t.Helper()
	names, err := fsys.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]byte)
	for _, name := range names {
		if name == "lock" || name == "salvaged" {
			continue
		}
		if all[name], err = vfs.ReadFile(fsys, dir+name); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// load returns a file system with the files.
func load(t testing.TB, all map[string][]byte) *memfs.FS {
	t.Helper()
	fsys := memfs.New()
	for name, b := range all {
		f, err := fsys.Create(testDir + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(b, 0); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if err := fsys.SyncDir(testDir); err != nil {
		t.Fatal(err)
	}
	return fsys
}

var goldenRecords = []string{"a", "eight by", "nine byte", strings.Repeat("x", 250), strings.Repeat("y", 100)}

// The log writes the bytes of testdata/v4.golden. A change of these bytes needs a new
// version.
func TestGolden(t *testing.T) {
	fsys := memfs.New()
	opt := Options{SegmentSize: 512, LogID: 0x1122334455667788, Created: 1234567890123456789}
	l := mustOpen(t, fsys, opt)
	for i, p := range goldenRecords {
		if _, err := l.Append([]byte(p)); err != nil {
			t.Fatal(err)
		}
		must(t, l.Flush())
		if i == 1 {
			must(t, l.Sync()) // seen in the synced offset of the next
		}
	}
	must(t, l.Close())

	var dump strings.Builder
	all := files(t, fsys)
	for _, name := range slices.Sorted(mapKeys(all)) {
		fmt.Fprintf(&dump, "-- %s --\n%s", name, hex.Dump(all[name]))
	}
	path := filepath.Join("testdata", "v4.golden")
	golden, err := os.ReadFile(path)
	if err != nil && *update {
		must(t, os.WriteFile(path, []byte(dump.String()), 0o644))
		golden, err = []byte(dump.String()), nil
	}
	must(t, err)
	if dump.String() != string(golden) {
		t.Errorf("written bytes\n%s\nwant\n%s", &dump, golden)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustOpen(t testing.TB, fsys vfs.FS, opt Options) *Log {
	t.Helper()
	l, err := Open(fsys, testDir, opt)
	must(t, err)
	_, _, err = replayAll(l)
	must(t, err)
	return l
}

// A record is unchanged after encoding and decoding. A single flipped bit outside the
// padding is detected, and records of other segments or logs are rejected.
func TestRecordCodec(t *testing.T) {
	h := header{log: 7, sequence: 9}
	for n := 1; n < 40; n++ {
		p := bytes.Repeat([]byte{byte(n)}, n)
		rec := appendRecord([]byte("before"), h.seed(), 64, 48, uint32(n), p[:n/2], p[n/2:])[len("before"):]
		if int64(len(rec)) != Cost(n) {
			t.Errorf("%d bytes: cost %d, record of %d", n, Cost(n), len(rec))
		}
		if reason := check(rec, h.seed(), 64); reason != "" || !bytes.Equal(payloadOf(rec), p) {
			t.Errorf("%d bytes: %s", n, reason)
		}
		if check(rec, header{log: 7, sequence: 10}.seed(), 64) == "" ||
			check(rec, header{log: 8, sequence: 9}.seed(), 64) == "" || check(rec, h.seed(), 72) == "" {
			t.Errorf("%d bytes: valid in another place", n)
		}
		for bit := range (recordHeader + n) * 8 {
			rec[bit/8] ^= 1 << (bit % 8)
			if _, reason := frame(rec, int64(len(rec))); reason == "" && check(rec, h.seed(), 64) == "" {
				t.Errorf("%d bytes: valid with bit %d flipped", n, bit)
			}
			rec[bit/8] ^= 1 << (bit % 8)
		}
	}
}

func TestFileName(t *testing.T) {
	for _, n := range []uint64{1, 0xabc, 1<<64 - 1} {
		if got, ok := parseName(FileName(n)); !ok || got != n {
			t.Errorf("%s: %d, %v", FileName(n), got, ok)
		}
	}
	for _, name := range []string{
		"binlog.1", "lock", "beanpole.1.wal", "beanpole.0000000000000000.wal", "beanpole.000000000000000A.wal",
		"beanpole.0000000000000001.wal.tmp", "beanpole.+000000000000001.wal", "beanpole.0000000000000001",
	} {
		if _, ok := parseName(name); ok {
			t.Errorf("%s is accepted as a segment", name)
		}
	}
}
