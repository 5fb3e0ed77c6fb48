package wal

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/vfs/memfs"
)

// hostile returns a body that looks like the headers of records wherever it is
// read: of a length and with a mark that are possible in a large segment.
func hostile(first, second uint32) string {
	b := make([]byte, 0, 65_000)
	for len(b) < 65_000 {
		b = binary.LittleEndian.AppendUint32(b, first)
		b = binary.LittleEndian.AppendUint32(b, second)
	}
	return string(b)
}

// Nobody can make a log that takes long to judge, or that cannot be repaired,
// with what he writes to it: no payload looks like a record.
func TestHostilePayloads(t *testing.T) {
	const n = 248
	fsys := memfs.New()
	l := mustOpen(t, fsys, Options{SegmentSize: 20 << 20})
	var want []string
	for i := range n {
		want = append(want, hostile(300_000, 2_400_000))
		if i%2 == 1 {
			want[i] = hostile(2_400_000, 300_000)
		}
		_, err := l.Append([]byte(want[i]))
		must(t, err)
	}
	must(t, l.Flush())
	must(t, l.Sync())
	last, err := l.Append([]byte(want[0]))
	must(t, err)
	must(t, l.Flush())
	before := files(t, fsys)
	name := FileName(1)

	// A page of the last write is missing: it is a torn write.
	torn := slices.Clone(before[name])
	clear(torn[last.Offset:][:4096])
	after := mustOpen(t, load(t, map[string][]byte{name: torn}), Options{ReadOnly: true})
	if end := after.sealed[0].End; end != last.Offset {
		t.Errorf("the records end at %d, want %d", end, last.Offset)
	}

	// A bit of the first record has changed: all others are kept.
	damaged := slices.Clone(before[name])
	damaged[1000] ^= 1
	mended := load(t, map[string][]byte{name: damaged})
	damage, err := Repair(mended, testDir)
	must(t, err)
	if len(damage) != 1 || damage[0].Offset != firstRecord || damage[0].Length != Cost(len(want[0])) {
		t.Errorf("damage: %v", damage)
	}
	got, err := openOnce(mended)
	if err != nil || len(got) != n || !slices.Equal(got[:n-1], want[1:]) {
		t.Errorf("%d records of %d, %v", len(got), n, err)
	}
}

// What version 1 wrote is read, goes on in the current version, and is cleaned; a
// damaged record in it is mended, the others are kept, also by one who wrote what
// looks like records.
func TestVersion1(t *testing.T) {
	for _, path := range []string{"testdata/v1.golden", "testdata/v1-closing.golden"} {
		fsys := load(t, golden(t, path))
		l := mustOpen(t, fsys, Options{SegmentSize: 512})
		appendAll(t, l, "new")
		must(t, l.Close())
		all := files(t, fsys)
		for name, b := range all {
			for off := 0; off < len(b); off += 5 {
				b := slices.Clone(b)
				b[off] ^= 4
				damaged := files(t, fsys)
				damaged[name] = b
				fsys := load(t, damaged)
				if got, err := openOnce(fsys); err == nil {
					if strings.Join(got, "") != strings.Join(goldenRecords, "")+"new" {
						t.Errorf("%s, %s, a bit at %d: records %.20q", path, name, off, got)
					}
					continue
				}
				if _, err := Repair(fsys, testDir); err != nil {
					t.Fatalf("%s, %s, a bit at %d: %v", path, name, off, err)
				}
				got, err := openOnce(fsys)
				if err != nil || len(got) < len(goldenRecords) {
					t.Fatalf("%s, %s, a bit at %d: after the repair %d records, %v", path, name, off, len(got), err)
				}
			}
		}
		l = mustOpen(t, fsys, Options{SegmentSize: 512})
		must(t, l.RemoveOldest())
		must(t, l.RemoveOldest())
		must(t, l.Close())
		if got, err := openOnce(fsys); err != nil || !slices.Equal(got, []string{"new"}) {
			t.Errorf("%s: after the removal of its segments %q, %v", path, got, err)
		}
	}
}
