package wal

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

func Example() {
	fsys := memfs.New()
	for range 2 {
		log, err := Open(fsys, "/", Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		decode := func(records []Record) (lines []string, err error) {
			for _, r := range records {
				lines = append(lines, string(r.Payload))
			}
			return lines, nil
		}
		apply := func(lines []string) error {
			fmt.Println("read:", strings.Join(lines, ", "))
			return nil
		}
		if _, err := Replay(log, decode, apply); err != nil {
			fmt.Println(err)
			return
		}
		for _, word := range []string{"one", "two"} {
			if _, err := log.Append([]byte(word)); err != nil {
				fmt.Println(err)
			}
		}
		if err := errors.Join(log.Flush(), log.Sync(), log.Close()); err != nil {
			fmt.Println(err)
		}
	}
	// Output: read: one, two
}

// The owner appends, flushes and removes while other goroutines sync and prepare. After a
// power cut the log contains all records that a sync confirmed.
func TestConcurrentSync(t *testing.T) {
	fsys := memfs.New()
	l := mustOpen(t, fsys, Options{SegmentSize: 2048, LogID: 7})

	type job struct {
		target Target
		upTo   int // number of records that the target covers
	}
	jobs := make(chan job, 1)
	prepare := make(chan struct{}, 1)
	var wg sync.WaitGroup
	confirmed := 0 // used by the syncer until wg.Wait
	wg.Go(func() {
		for j := range jobs {
			if err := j.target.Sync(); err != nil {
				t.Error(err)
			}
			confirmed = j.upTo
		}
	})
	wg.Go(func() {
		for range prepare {
			if err := l.Prepare(); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range 3000 {
		_, err := l.Append([]byte(payload(i)))
		must(t, err)
		if i%3 != 0 {
			continue
		}
		must(t, l.Flush())
		select {
		case jobs <- job{l.Target(), i + 1}:
		default:
		}
		if l.NeedsPrepare() {
			select {
			case prepare <- struct{}{}:
			default:
			}
		}
		if i%100 == 0 {
			must(t, l.Sync())
			must(t, l.check())
		}
	}
	close(jobs)
	close(prepare)
	wg.Wait()
	if confirmed == 0 {
		t.Fatal("no sync")
	}
	for seed := range uint64(10) {
		after, err := Open(fsys.Crash(newRand(seed)), testDir, Options{})
		must(t, err)
		got, _, err := replayAll(after)
		must(t, err)
		if len(got) < confirmed {
			t.Errorf("%d records, %d were confirmed", len(got), confirmed)
		}
		for i, p := range got {
			if p != payload(i) {
				t.Fatalf("record %d is %.20q", i, p)
			}
		}
	}
}

// The next Flush, not an Append, reports a failed sync of another goroutine. The log
// heals, but earlier targets remain failed.
func TestFailedTarget(t *testing.T) {
	fsys := faultfs.New(memfs.New())
	l := mustOpen(t, fsys, testOptions)
	first, err := l.Append([]byte("first"))
	must(t, err)
	must(t, l.Flush())
	must(t, l.Sync())
	durable := l.Target()
	lost, err := l.Append([]byte("second"))
	must(t, err)
	must(t, l.Flush())
	target := l.Target()
	fsys.Set(faultfs.Fault{Op: faultfs.Sync})
	if err := target.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("sync: %v", err)
	}
	if _, err := l.Append([]byte("third")); err != nil {
		t.Errorf("append before the owner notices: %v", err)
	}
	if err := l.Flush(); !errors.Is(err, syscall.EIO) {
		t.Errorf("flush: %v", err)
	}
	if _, err := l.Append([]byte("fourth")); !errors.Is(err, syscall.EIO) {
		t.Errorf("append: %v", err)
	}
	if err := l.Reserve(16); !errors.Is(err, syscall.EIO) {
		t.Errorf("reserve: %v", err)
	}
	if err := l.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("sync: %v", err)
	}
	moved := map[Pos]Pos{}
	must(t, l.Recover(func(from, to Pos, _ []byte) { moved[from] = to }))
	if len(moved) != 2 || moved[lost].Segment <= lost.Segment || moved[first] != (Pos{}) {
		t.Errorf("moved %v", moved)
	}
	if err := target.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("the target of lost records: %v", err)
	}
	if err := durable.Sync(); err != nil {
		t.Errorf("the target of durable records: %v", err)
	}
	must(t, l.Recover(nil))
	must(t, l.Close())
	l, err = Open(fsys, testDir, testOptions)
	must(t, err)
	got, _, err := replayAll(l)
	must(t, err)
	if strings.Join(got, " ") != "first second third" {
		t.Errorf("records: %q", got)
	}
}

// A log can be open only once, except read-only.
func TestOpenTwice(t *testing.T) {
	fsys := memfs.New()
	l := mustOpen(t, fsys, Options{})
	if _, err := Open(fsys, testDir, Options{}); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("second open: %v", err)
	}
	ro := mustOpen(t, fsys, Options{ReadOnly: true})
	for what, err := range map[string]error{
		"append": second(ro.Append([]byte("x"))), "flush": ro.Flush(), "reserve": ro.Reserve(16), "remove": ro.RemoveOldest(),
	} {
		if err != ErrReadOnly {
			t.Errorf("%s: %v, want ErrReadOnly", what, err)
		}
	}
	must(t, ro.Close())
	must(t, l.Close())
	if err := l.Close(); err != ErrClosed {
		t.Errorf("second close: %v", err)
	}
	if _, err := l.Append([]byte("x")); err != ErrClosed {
		t.Errorf("append to a closed log: %v", err)
	}
	l, err := Open(fsys, testDir, Options{})
	must(t, err)
	if _, err := l.Append([]byte("x")); err != ErrNotRead {
		t.Errorf("append before Replay: %v", err)
	}
	must(t, l.Close())
	if _, err := Open(fsys, "/missing", Options{}); err == nil {
		t.Error("a log in a missing directory was opened")
	}
}

func second[T any](_ T, err error) error { return err }

func TestTooLarge(t *testing.T) {
	l := mustOpen(t, memfs.New(), Options{})
	part := make([]byte, 1<<26)
	parts := make([][]byte, 17) // 1 GiB and 64 MB in total
	for i := range parts {
		parts[i] = part
	}
	if _, err := l.Append(parts...); err != ErrTooLarge {
		t.Errorf("append: %v", err)
	}
	if err := l.Reserve(Cost(MaxPayload) + 1); err != ErrTooLarge {
		t.Errorf("reserve: %v", err)
	}
}

// Flush writes once to each segment, and opens and checks the file of a new segment. Sync
// makes no file call if there is nothing new.
func TestCalls(t *testing.T) {
	fsys := faultfs.New(memfs.New())
	l := mustOpen(t, fsys, Options{SegmentSize: 1024})
	must(t, l.Reserve(Cost(500)))
	must(t, l.Reserve(Cost(500)))
	must(t, l.Reserve(Cost(500)))
	l.Unreserve(Cost(500))
	l.Unreserve(Cost(500))
	l.Unreserve(Cost(500))
	must(t, l.Prepare())
	count := func(op faultfs.Op, do func() error) int {
		t.Helper()
		fsys.Set(faultfs.Fault{Op: op, N: 1 << 30})
		must(t, do())
		return fsys.Seen()
	}
	for _, want := range []int{3, 1} { // the first write opens and checks the file
		for range 5 {
			_, err := l.Append(make([]byte, 20))
			must(t, err)
		}
		if n := count(faultfs.Any, l.Flush); n != want {
			t.Errorf("%d calls for a flush, want %d", n, want)
		}
	}
	if n := count(faultfs.Any, l.Flush); n != 0 {
		t.Errorf("%d calls without data to flush", n)
	}
	if n := count(faultfs.Any, l.Sync); n != 2 {
		t.Errorf("%d calls for a sync, want 2: it also checks the file", n)
	}
	if n := count(faultfs.Any, l.Sync); n != 0 {
		t.Errorf("%d calls without data to sync", n)
	}
	for range 3 {
		_, err := l.Append(make([]byte, 500))
		must(t, err)
	}
	if n := count(faultfs.Write, l.Flush); n != 3 {
		t.Errorf("%d writes for a flush over three segments; the first gets only its end", n)
	}
}

// Segments that were created for reservations are removed when the reservations end.
func TestTrim(t *testing.T) {
	fsys := memfs.New()
	l := mustOpen(t, fsys, Options{SegmentSize: 4096})
	for range 500 {
		must(t, l.Reserve(Cost(40)))
	}
	must(t, l.Reserve(Cost(10_000)))
	before := l.Stats()
	for range 500 {
		l.Unreserve(Cost(40))
	}
	l.Unreserve(Cost(10_000))
	if before.Preallocated < 7 || before.Room < before.Reserved {
		t.Errorf("with reservations: %+v", before)
	}
	for range 100 { // creates and removes segments
		for range 5 {
			_, err := l.Append(make([]byte, 1000))
			must(t, err)
		}
		must(t, l.Flush())
		for len(l.sealed) > 0 {
			must(t, l.RemoveOldest())
		}
		must(t, l.Prepare())
	}
	if after := l.Stats(); after.Preallocated > 3 || after.Reserved != 0 || after.Segments != 1 {
		t.Errorf("without: %+v", after)
	}
	must(t, l.Close())
}

// Replay works for all sizes of records and blocks and any number of goroutines, and it
// reports its progress until the end.
func TestReplayBlocks(t *testing.T) {
	fsys := memfs.New()
	l := mustOpen(t, fsys, Options{SegmentSize: 4096})
	for i := range 400 {
		_, err := l.Append([]byte(payload(i)))
		must(t, err)
	}
	must(t, l.Close())
	for _, blockSize := range []int{1, 13, 64, 1000, 1 << 20} {
		for _, parallel := range []int{1, 3, 8} {
			var done, total int64
			l, err := Open(fsys, testDir, Options{ReadOnly: true, Parallel: parallel, blockSize: blockSize,
				Progress: func(d, n int64) {
					if d <= done {
						t.Errorf("progress from %d to %d", done, d)
					}
					done, total = d, n
				}})
			must(t, err)
			got, report, err := replayAll(l)
			must(t, err)
			if len(got) != 400 || report.Records != 400 {
				t.Fatalf("%d records, report %+v", len(got), report)
			}
			for i, p := range got {
				if p != payload(i) {
					t.Fatalf("record %d is %.20q", i, p)
				}
			}
			if done+int64(report.Segments)*headerSize != total || total != report.Bytes {
				t.Errorf("progress ended at %d of %d, %d segments of %d bytes", done, total, report.Segments, report.Bytes)
			}
		}
	}
}

// Replay ends, and never hangs, if decode or apply returns an error or a file is
// unreadable.
func TestReplayErrors(t *testing.T) {
	disk := memfs.New()
	l := mustOpen(t, disk, Options{SegmentSize: 4096})
	for i := range 400 {
		_, err := l.Append([]byte(payload(i)))
		must(t, err)
	}
	must(t, l.Close())
	wrong := errors.New("wrong")
	for n := range 40 {
		stop := []byte(fmt.Sprintf("%d:", n*10))
		check := func(recs []Record) error {
			for _, r := range recs {
				if bytes.HasPrefix(r.Payload, stop) {
					return wrong
				}
			}
			return nil
		}
		ok := func([]Record) error { return nil }
		for _, in := range []string{"decode", "apply"} {
			l, err := Open(disk, testDir, Options{ReadOnly: true, Parallel: 2, blockSize: 256})
			must(t, err)
			decode, apply := check, ok
			if in == "apply" {
				decode, apply = ok, check
			}
			_, err = Replay(l, func(r []Record) ([]Record, error) { return r, decode(r) }, apply)
			if err != wrong {
				t.Errorf("%s, record %d: %v", in, n*10, err)
			}
		}
		fsys := faultfs.New(disk)
		l, err := Open(fsys, testDir, Options{ReadOnly: true, Parallel: 2, blockSize: 256})
		must(t, err)
		fsys.Set(faultfs.Fault{Op: faultfs.Read, N: n + 1})
		if _, _, err := replayAll(l); !errors.Is(err, syscall.EIO) {
			t.Errorf("read %d fails: %v", n, err)
		}
	}
}

// Append, Flush and Sync allocate nothing.
func TestCommitAllocates(t *testing.T) {
	if seeds.Race {
		t.Skip("the race detector allocates")
	}
	l, err := Open(vfs.OS, t.TempDir(), Options{})
	must(t, err)
	_, _, err = replayAll(l)
	must(t, err)
	head, body := make([]byte, 30), make([]byte, 64)
	commit := func() {
		if _, err := l.Append(head, body); err != nil {
			t.Fatal(err)
		}
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := l.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 { // until the buffer has grown
		commit()
	}
	if n := testing.AllocsPerRun(100, commit); n != 0 {
		t.Errorf("a commit allocates %v times", n)
	}
	must(t, l.Close())
}
