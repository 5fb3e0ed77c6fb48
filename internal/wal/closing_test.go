package wal

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

// After a clean end, Open refuses any damage to the last written segment, or the damage
// costs no record. The test tries each bit of the header, the link and the records, and
// every range of zeros between any two of them.
func TestClosedLogProvesItsRecords(t *testing.T) {
	fsys := memfs.New()
	l := mustOpen(t, fsys, Options{SegmentSize: 512, LogID: 7})
	var want []string
	for i := range 5 { // Close syncs all of them at once
		want = append(want, strings.Repeat("x", 5+i))
		_, err := l.Append([]byte(want[i]))
		must(t, err)
	}
	must(t, l.Close())
	all := files(t, fsys)
	name := FileName(1)
	end := len(all[name]) - int(closingSize)
	try := func(what string, damage func(b []byte)) {
		t.Helper()
		b := bytes.Clone(all[name])
		damage(b)
		got, err := openOnce(load(t, map[string][]byte{name: b}))
		if !errors.Is(err, ErrCorrupt) && (err != nil || !slices.Equal(got, want)) {
			t.Errorf("%s: error %v, records %q", what, err, got)
		}
	}
	for off := range end {
		for bit := range 8 {
			try(fmt.Sprintf("bit %d at %d", bit, off), func(b []byte) { b[off] ^= 1 << bit })
		}
	}
	for from := headerSize; from < end; from++ {
		for to := from + 1; to <= end; to++ {
			try(fmt.Sprintf("zeros from %d to %d", from, to), func(b []byte) { clear(b[from:to]) })
		}
	}
}

// A closing record can be written on a full disk, because each segment reserves space for
// one.
func TestCloseOnFullDisk(t *testing.T) {
	for n := 1; n < 60; n++ {
		fsys := memfs.New()
		l := mustOpen(t, fsys, Options{SegmentSize: 512, LogID: 7})
		for len(l.sealed) == 0 && (l.active() == nil || l.active().free() >= Cost(n)) {
			_, err := l.Append(make([]byte, n))
			must(t, err)
		}
		fsys.SetLimit(1)
		must(t, l.Close())
		b := files(t, fsys)[FileName(1)]
		at := len(b) - int(closingSize)
		if length, internal := recordLength(b[at:]); length != 1 || !internal || payloadOf(b[at:])[0] != kindClosing || recordSynced(b[at:]) != int64(at) {
			t.Errorf("records of %d bytes: the end of the segment is % x", n, b[at:])
		}
	}
}
