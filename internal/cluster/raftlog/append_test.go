package raftlog

import (
	"runtime"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"go.etcd.io/raft/v3/raftpb"
)

// openUncut opens an empty log and appends n entries of 60 bytes. Like the log of a
// leader with an absent member, it is never cut.
func openUncut(t *testing.T, fsys vfs.FS, dir string, opt Options, n uint64) *Log {
	log, err := Open(fsys, dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	const batch = 1000
	for last := uint64(0); last < n; last += batch {
		entries := make([]*raftpb.Entry, batch)
		for i := range entries {
			entries[i] = entryWith(last+uint64(i)+1, 60)
		}
		if err := log.Append(nil, entries); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

// The cost of an append does not depend on the number of entries in memory. This is true
// even if the open segment contains more than Options.Recent bytes, or if segments are
// sealed.
func TestAppendAllocatesLittle(t *testing.T) {
	const appends = 20_000
	for name, segment := range map[string]int64{"one open segment": 64 << 20, "many sealed segments": 64 << 10} {
		t.Run(name, func(t *testing.T) {
			log := openUncut(t, vfs.OS, t.TempDir(), Options{SegmentSize: segment, Recent: 512 << 10}, appends)
			var before, after runtime.MemStats
			last := log.Last().Index
			runtime.ReadMemStats(&before)
			for i := range uint64(appends) {
				if err := log.Append(nil, []*raftpb.Entry{entryWith(last+i+1, 60)}); err != nil {
					t.Fatal(err)
				}
			}
			runtime.ReadMemStats(&after)
			if each := (after.TotalAlloc - before.TotalAlloc) / appends; each > 2048 {
				t.Errorf("an append allocates %d bytes", each)
			}
		})
	}
}

// Entries allocates only for the entries that it returns, not for all entries up to hi.
func TestEntriesAllocatesForItsLimit(t *testing.T) {
	log := openUncut(t, memfs.New(), "/", Options{}, 50_000)
	hi := log.Last().Index + 1
	allocated := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if entries, err := log.Entries(1, hi, 1000); err != nil || len(entries) != 11 {
				b.Fatalf("%d entries, %v", len(entries), err)
			}
		}
	}).AllocedBytesPerOp()
	if allocated > 1024 {
		t.Errorf("reading 11 entries allocates %d bytes", allocated)
	}
}
