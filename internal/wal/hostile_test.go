package wal

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

// hostile returns a body that looks like record headers at every offset, with a plausible
// length and mark.
func hostile(first, second uint32) string {
	b := make([]byte, 0, 65_000)
	for len(b) < 65_000 {
		b = binary.LittleEndian.AppendUint32(b, first)
		b = binary.LittleEndian.AppendUint32(b, second)
	}
	return string(b)
}

// No client can create a log that takes long to check, or that Salvage cannot read: no
// payload looks like a record.
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

	// A page of the last write is missing, so it is a torn write.
	torn := slices.Clone(before[name])
	clear(torn[last.Offset:][:4096])
	after := mustOpen(t, load(t, map[string][]byte{name: torn}), Options{ReadOnly: true})
	if end := after.sealed[0].End; end != last.Offset {
		t.Errorf("the records end at %d, want %d", end, last.Offset)
	}

	// A bit of the first record has changed. All other records are kept.
	damaged := slices.Clone(before[name])
	damaged[1000] ^= 1
	mended := load(t, map[string][]byte{name: damaged})
	must(t, mended.Mkdir(testDir+"salvaged"))
	_, damage, err := Salvage(mended, testDir, salvageDir, Options{})
	must(t, err)
	if len(damage) != 1 || damage[0].Offset != firstRecord || damage[0].Length != Cost(len(want[0])) {
		t.Errorf("damage: %v", damage)
	}
	got, err := openOnce(load(t, filesIn(t, mended, salvageDir)))
	if err != nil || !slices.Equal(got, append(want[1:], want[0])) {
		t.Errorf("%d records of %d, %v", len(got), n, err)
	}
}
