package wal

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A Record is one that was read.
type Record struct {
	Pos
	Payload []byte
}

// A Report says what Replay found.
type Report struct {
	Segments int
	Records  int
	Bytes    int64  // of the segments up to their ends
	Torn     []Tear // what was cut off, usually nothing or one
}

// A Tear is the end of a write that the last crash interrupted. It was cut off,
// or in read-only mode would be.
type Tear struct {
	File    string // path
	Offset  int64  // at which it began
	Dropped int64  // its length in bytes
}

// defaultBlockSize is how many bytes are read at a time. Five blocks and what
// they are decoded to are on their way at once with two processors: with blocks
// of a megabyte a server of 100,000 jobs had twice its later memory at its start.
const defaultBlockSize = 256 << 10

// Replay reads all records of a log that was just opened. It can be called once,
// and must be before the log is written.
//
// Blocks of records, about 256 KiB each, are given to decode, by several
// goroutines at once, and what decode makes of them to apply, by the calling
// goroutine, in the order of the log. Payloads are valid until apply has
// returned. No more than a few blocks per goroutine are in memory at a time. An
// error of either ends Replay, which returns it as it is.
//
// A torn tail is cut and reported; see the package comment. If there is damage
// the error is a [*CorruptError]; records before it may have been applied, and
// nothing was changed on the disk. After an error the log can only be closed.
func Replay[T any](l *Log, decode func([]Record) (T, error), apply func(T) error) (Report, error) {
	if l.err != nil {
		return Report{}, l.err
	}
	if l.scan == nil {
		return Report{}, errors.New("wal: the log was replayed already")
	}
	report, err := replay(l, decode, apply)
	if err == nil {
		err = l.tidy(&report)
	}
	if err != nil {
		l.err = err
	}
	return report, err
}

// A block is a stretch of records on its way from the reader by a decoder to
// the caller.
type block[T any] struct {
	segment *found
	off     int64 // of data in the segment
	data    []byte
	bad     string // why there is no record after data; empty if there may be

	records []Record
	out     T
	err     error
	decoded chan struct{} // has one element when the fields above are final
}

func replay[T any](l *Log, decode func([]Record) (T, error), apply func(T) error) (Report, error) {
	var report Report
	var total, done int64
	for _, f := range l.scan.segments {
		total += f.end
	}
	parallel := l.opt.Parallel
	if parallel <= 0 {
		parallel = runtime.GOMAXPROCS(0)
	}

	// The free blocks bound the memory. Each channel holds all blocks, so only
	// taking a free one can wait.
	n := 2*parallel + 1
	free, toDecode, inOrder := make(chan *block[T], n), make(chan *block[T], n), make(chan *block[T], n)
	quit := make(chan struct{})
	for range n {
		free <- &block[T]{decoded: make(chan struct{}, 1)}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(quit)
	var readErr error // final when inOrder is closed
	wg.Go(func() {
		defer close(toDecode)
		defer close(inOrder)
		readErr = readBlocks(l, free, quit, func(b *block[T]) {
			toDecode <- b
			inOrder <- b
		})
	})
	for range parallel {
		wg.Go(func() {
			for b := range toDecode {
				b.check()
				if b.err == nil && len(b.records) > 0 {
					b.out, b.err = decode(b.records)
				}
				b.decoded <- struct{}{}
			}
		})
	}

	segments := l.scan.segments
	for b := range inOrder {
		<-b.decoded
		if b.err != nil {
			return report, b.err
		}
		if len(b.records) > 0 {
			if err := apply(b.out); err != nil {
				return report, err
			}
		}
		report.Records += len(b.records)
		end := b.off + int64(len(b.data))
		if b.bad != "" {
			if b.segment != &segments[len(segments)-1] {
				return report, b.segment.corrupt(end, "%s; the segment's records end at %d", b.bad, b.segment.end)
			}
			b.segment.end = end
			return report, nil // whatever the reader made of the rest
		}
		done += int64(len(b.data))
		if l.opt.Progress != nil {
			l.opt.Progress(done, total)
		}
		free <- b
	}
	return report, readErr
}

// check checks the records of the block and lists those that are not internal.
func (b *block[T]) check() {
	b.records = b.records[:0]
	var zero T
	b.out, b.err = zero, nil
	seed := b.segment.header.seed()
	for at := int64(0); at < int64(len(b.data)); {
		rec := b.data[at:]
		n, internal := recordLength(rec)
		if reason := checkRecord(rec, seed, b.off+at); reason != "" {
			b.bad, b.data = reason, b.data[:at]
			return
		}
		if !internal {
			b.records = append(b.records, Record{Pos{b.segment.sequence, b.off + at}, rec[recordHeader : recordHeader+n]})
		}
		at += Cost(n)
	}
}

// readBlocks reads all segments and emits their blocks. It looks at lengths
// only: the checksums are for those who decode.
func readBlocks[T any](l *Log, free <-chan *block[T], quit <-chan struct{}, emit func(*block[T])) error {
	size := l.opt.blockSize
	if size == 0 {
		size = defaultBlockSize
	}
	for i := range l.scan.segments {
		f := &l.scan.segments[i]
		if f.end == 0 {
			continue // void
		}
		file, err := l.fs.Open(f.path)
		if err != nil {
			return fmt.Errorf("wal: %w", err)
		}
		limit := f.end // which the consumer changes when it has found the end
		bad := ""
		for off := int64(headerSize); off < limit && bad == ""; {
			select {
			case <-quit:
				file.Close()
				return nil
			case b := <-free:
				b.segment, b.off = f, off
				if b.data, bad, err = readRecords(file, b.data, off, limit, size); err != nil {
					file.Close()
					return fmt.Errorf("wal: read %s: %w", f.path, err)
				}
				b.bad = bad
				off += int64(len(b.data))
				emit(b)
			}
		}
		file.Close()
		if bad != "" {
			return nil
		}
	}
	return nil
}

// readRecords reads whole records that begin at off and end before limit, about
// size bytes of them but at least one, into buf. reason says why there is no
// record after them, if that is known; only the lengths are looked at.
func readRecords(f vfs.File, buf []byte, off, limit int64, size int) (data []byte, reason string, err error) {
	want := min(limit-off, int64(size))
	for {
		if int64(cap(buf)) < want {
			buf = make([]byte, want)
		}
		buf = buf[:want]
		if err := readFull(f, buf, off); err != nil {
			return buf[:0], "", err
		}
		at := int64(0)
		for at < want {
			left := limit - off - at
			if want-at < min(left, recordHeader) {
				break
			}
			n, reason := frame(buf[at:], left)
			if reason != "" {
				return buf[:at], reason, nil
			}
			if at+n > want {
				if at == 0 {
					want = n // one large record
				}
				break
			}
			at += n
		}
		if at > 0 {
			return buf[:at], "", nil
		}
		want = max(want, min(limit-off, recordHeader))
	}
}

// tidy judges the end of the log and, when it is known to be good, removes what
// a crash has left. Then the log can be written.
func (l *Log) tidy(report *Report) error {
	sc := l.scan
	var last *found
	if n := len(sc.segments); n > 0 {
		last = &sc.segments[n-1]
		if err := l.judge(last, last.end, report); err != nil {
			return err
		}
	}
	for i := range sc.torn {
		if err := l.judge(&sc.torn[i], headerSize, report); err != nil {
			return err
		}
	}
	for _, f := range sc.segments {
		l.sealed = append(l.sealed, Segment{f.sequence, f.end})
		report.Segments++
		report.Bytes += f.end
	}
	if last != nil {
		l.prev = Pos{last.sequence, last.end}
	}
	if l.lock != nil {
		if err := l.clean(last); err != nil {
			return fmt.Errorf("wal: clean up: %w", err)
		}
	}
	l.scan = nil
	return nil
}

// clean cuts the last segment to its records and removes files without any.
func (l *Log) clean(last *found) error {
	if last != nil {
		if err := l.settleLast(last); err != nil {
			return err
		}
	}
	for _, f := range append(l.scan.remove, l.scan.torn...) {
		if err := removeFile(l.fs, f.path); err != nil {
			return err
		}
	}
	return l.fs.SyncDir(l.dir) // also for what a process removed that was killed before its own
}

// settleLast makes the last segment what the next one's link will say that it
// is. It syncs it in any case: a process that was killed may have left records
// that are in the kernel's cache only.
func (l *Log) settleLast(last *found) error {
	f, err := l.fs.OpenWrite(last.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if last.end < last.size {
		if err := f.Truncate(last.end); err != nil {
			return err
		}
	}
	return f.Sync()
}

// judge decides whether what is in the last segment at x, where its valid
// records end, is the torn end of a write or damage.
func (l *Log) judge(f *found, x int64, report *Report) error {
	b, last, err := lastNonZero(l.fs, f.path, x, f.size)
	if err != nil || last < 0 {
		return err
	}
	switch proof := findProof(b, f.header.seed(), x); {
	case proof < 0:
		return f.corrupt(x, "no valid record, and what follows looks like records too often to tell a torn write from damage")
	case proof > 0:
		return f.corrupt(x, "no valid record, but a later one, at offset %d, proves that there was one", proof)
	}
	report.Torn = append(report.Torn, Tear{f.path, x, last + 1 - x})
	return nil
}

// proofBudget bounds how many bytes findProof takes checksums of. Only somebody
// who writes jobs that look like records of this file can make it that many.
const proofBudget = 16 << 30

// findProof looks in the bytes b from offset x of a segment for a valid record
// that was written when x was known to be durable. It returns its offset, 0 if
// there is none, or -1 if that took too long to find out.
func findProof(b []byte, seed uint32, x int64) int64 {
	budget := int64(proofBudget)
	for at := int64(alignment); at+recordHeader <= int64(len(b)); at += alignment {
		if synced := recordSynced(b[at:]); synced <= x || synced > x+at {
			continue
		}
		n, reason := frame(b[at:], int64(len(b))-at)
		if reason != "" {
			continue
		}
		if budget -= n; budget < 0 {
			return -1
		}
		if checkRecord(b[at:], seed, x+at) == "" {
			return x + at
		}
	}
	return 0
}
