package wal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"sync"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A Record is a record that was read.
type Record struct {
	Pos
	Payload []byte
}

// A Report says what Replay found.
type Report struct {
	Segments int
	Records  int
	Bytes    int64  // of the segments up to their ends
	Torn     []Tear // what was cut off; usually none or one
}

// A Tear is the incomplete end of a write that the last crash interrupted. It was cut
// off, or would be if the log was not read only.
type Tear struct {
	File   string // path
	Offset int64  // at which it began
	Length int64  // its length in bytes
	Closed bool   // there is a closing record before it, so the log did not write it

	// Records is how many whole records are in it: what is before them may be damage, which
	// nothing proves. Then Kept is the path of a copy, or empty if none could be made.
	Records int
	Kept    string
}

// defaultBlockSize is how many bytes are read at a time. With two processors, five
// blocks are in memory at once, with what they are decoded to. With blocks of a
// megabyte, a server with 100,000 jobs took twice as much memory at its start as
// later.
const defaultBlockSize = 256 << 10

// Replay reads all records of a log that was just opened. It can be called once,
// and must be before the log is written.
//
// Several goroutines call decode with blocks of records, about 256 KiB each. The
// calling goroutine calls apply with the results, in the order of the log. Payloads
// are valid until apply has returned. No more than a few blocks per goroutine are
// in memory at a time. An error of decode or apply ends Replay, which returns it as
// it is.
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
	joined  Record // the record of which data is the last fragment; its payload is nil for other data
	bad     string // why there is no record after data; empty if there may be

	records []Record
	oldest  uint64 // the highest that a record in it names, or 0
	closed  bool   // the last record in it is the closing one
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
		l.scan.oldest = max(l.scan.oldest, b.oldest)
		end := b.off + int64(len(b.data))
		isLast := b.segment == &segments[len(segments)-1]
		done += int64(len(b.data))
		if l.opt.Progress != nil && len(b.data) > 0 {
			l.opt.Progress(done, total)
		}
		b.segment.closed = b.closed
		switch {
		case isLast && (b.closed || b.bad != ""):
			b.segment.end = end
			return report, nil // the log ends here; tidy decides about what follows
		case b.bad != "":
			return report, b.segment.corrupt(end, "%s; the segment's records end at %d", b.bad, b.segment.end)
		case b.closed && end < b.segment.end:
			return report, b.segment.corrupt(end, "a closing record; the segment's records end at %d", b.segment.end)
		}
		free <- b
	}
	return report, readErr
}

// check checks the records of the block and lists those that are not internal. It cuts
// the block after a closing record, which is always the last one.
func (b *block[T]) check() {
	b.records = b.records[:0]
	var zero T
	b.out, b.err, b.oldest, b.closed = zero, nil, 0, false
	if b.joined.Payload != nil {
		b.records = append(b.records, b.joined)
		return
	}
	seed := b.segment.seed()
	for at := int64(0); at < int64(len(b.data)); {
		rec := b.data[at:]
		n, internal := recordLength(rec)
		if reason := check(rec, seed, b.off+at); reason != "" {
			b.bad, b.data = reason, b.data[:at]
			return
		}
		payload := payloadOf(rec)
		at += Cost(n)
		switch {
		case !internal && !isFragment(rec): // a fragment comes alone
			b.records = append(b.records, Record{Pos{b.segment.sequence, b.off + at - Cost(n)}, payload})
		case internal && payload[0] == kindOldest:
			b.oldest = max(b.oldest, pointee(kindOldest, payload))
		case internal && payload[0] == kindClosing:
			b.closed, b.bad, b.data = true, "", b.data[:at]
			return
		}
	}
}

// readBlocks reads all segments and emits their blocks. It looks at lengths only; the
// goroutines that decode verify the checksums.
func readBlocks[T any](l *Log, free <-chan *block[T], quit <-chan struct{}, emit func(*block[T])) error {
	size := l.opt.blockSize
	if size == 0 {
		size = defaultBlockSize
	}
	var join joiner
	for i := range l.scan.segments {
		f := &l.scan.segments[i]
		if f.end == 0 {
			continue // void
		}
		file, err := l.fs.Open(f.path)
		if err != nil {
			return fmt.Errorf("wal: %w", err)
		}
		limit := f.end // a copy: the consumer changes f.end
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
				if b.joined = (Record{}); len(b.data) > 0 && isFragment(b.data) {
					if reason := check(b.data, f.seed(), off); reason != "" {
						b.data, bad = b.data[:0], reason
					} else {
						b.joined.Pos, b.joined.Payload = join.add(payloadOf(b.data))
					}
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

// readRecords reads whole records into buf. They begin at off and end before limit: at
// least one record, and about size bytes. A fragment comes alone. readRecords looks at
// lengths only. If it knows why there is no record after them, reason says so.
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
			if isFragment(buf[at:]) {
				if at == 0 {
					at = n
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

// tidy checks the ends of the log. If they are good it removes what a crash has left,
// and the log can be written.
func (l *Log) tidy(report *Report) error {
	sc := l.scan
	var last *found
	if n := len(sc.segments); n > 0 {
		last = &sc.segments[n-1]
		if err := l.checkTail(last, last.end, report); err != nil {
			return err
		}
	}
	for i := range sc.torn {
		if err := l.checkTail(&sc.torn[i], headerSize, report); err != nil {
			return err
		}
	}
	if last != nil {
		if err := l.complete(last); err != nil {
			return err
		}
		if err := sc.checkOldest(); err != nil {
			return err
		}
	}
	if l.lock != nil {
		if err := l.keepRecords(report.Torn); err != nil {
			return err
		}
		if err := l.clean(last); err != nil {
			return fmt.Errorf("wal: clean up: %w", err)
		}
	}
	for _, f := range sc.segments {
		l.sealed = append(l.sealed, Segment{f.sequence, f.end, f.closed})
		report.Segments++
		report.Bytes += f.end
	}
	if last != nil {
		l.prev, l.prevClosed = Pos{last.sequence, last.end}, last.closed
	}
	l.removed = sc.oldest
	l.scan = nil
	return nil
}

// complete returns an error if newer segments than the last one are missing, or the
// end of the last one.
func (l *Log) complete(last *found) error {
	if !last.closed {
		if last.isShort() {
			return last.corrupt(last.end, "the file is shorter than it was: it has no closing record, and is not as long as one that was not closed")
		}
		return nil
	}
	w, err := openWindow(l.fs, last.path)
	if err != nil {
		return err
	}
	defer w.close()
	next, err := w.next(last.seed(), last.end)
	if err == nil && next != 0 {
		err = last.corrupt(last.end, "the segment that follows, %s, is missing, or its beginning is damaged", FileName(next))
	}
	return err
}

// checkOldest returns an error if segments are missing that are older than the first
// one and needed.
func (sc *scan) checkOldest() error {
	first := &sc.segments[0]
	for i := range sc.segments { // the first that is not void
		if first = &sc.segments[i]; first.end > 0 {
			break
		}
	}
	before := first.link.prev.Segment
	switch {
	case before == 0 || sc.oldest > before:
		return nil
	case sc.gap != nil:
		return sc.gap
	}
	return first.corrupt(headerSize, "the segment before, %s, is missing: the oldest that is needed is %s", FileName(before), FileName(sc.oldest))
}

// keepRecords copies the ends that hold whole records, before they are cut off. A disk that
// has no room for that does not stop the start.
func (l *Log) keepRecords(torn []Tear) error {
	kept := false
	for i := range torn {
		if t := &torn[i]; t.Records > 0 && t.keep(l.fs) == nil {
			kept = true
		}
	}
	if !kept {
		return nil
	}
	return l.fs.SyncDir(l.dir)
}

// keep copies what is cut off to a file beside the segment.
func (t *Tear) keep(fsys vfs.FS) error {
	w, err := openWindow(fsys, t.File)
	if err != nil {
		return err
	}
	defer w.close()
	for n := 0; ; n++ {
		name := fmt.Sprintf("%s.%x-%x.%d.removed", t.File, t.Offset, t.Offset+t.Length, n)
		err := WriteFile(fsys, name, io.NewSectionReader(w.file, t.Offset, t.Length))
		if err == nil {
			t.Kept = name
		}
		if !errors.Is(err, fs.ErrExist) { // there is one after a start that was interrupted
			return err
		}
	}
}

// clean completes the last segment. It puts files without records into the pool again,
// or removes them.
func (l *Log) clean(last *found) error {
	if last != nil {
		if err := l.closeLast(last); err != nil {
			return err
		}
		if err := l.writeLastSuccessor(last); err != nil {
			return err
		}
	}
	slices.SortFunc(l.scan.remove, func(a, b found) int { return cmp.Compare(a.sequence, b.sequence) })
	unused := l.scan.torn
	for _, f := range l.scan.remove {
		if !l.pool.adopt(&f) {
			unused = append(unused, f)
		}
	}
	for _, f := range unused {
		if err := removeFile(l.fs, f.path); err != nil {
			return err
		}
	}
	return l.fs.SyncDir(l.dir) // also for the removals of a process that was killed before its SyncDir
}

// closeLast makes the last segment durable and complete. It always syncs: a process
// that was killed may have left records that are only in the kernel's cache. Then it
// appends a closing record if there is none, and cuts the file there.
func (l *Log) closeLast(last *found) error {
	f, err := l.fs.OpenWrite(last.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return err
	}
	if !last.closed {
		// The zeros overwrite what may look like the name of a next segment.
		b := appendRecord(nil, last.seed(), last.end, last.end, 1|internalBit, []byte{kindClosing})
		b = append(b, make([]byte, nextSize)...)
		if _, err := f.WriteAt(b, last.end); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		last.end += closingSize
		last.closed = true
	}
	size := last.end + nextSize
	if size < last.size {
		if err := f.Truncate(size); err != nil {
			return err
		}
	}
	return nil
}

// writeLastSuccessor writes the name of the last segment to the one before, if the
// process that wrote them has not done so.
func (l *Log) writeLastSuccessor(last *found) error {
	for _, f := range l.scan.segments {
		if f.sequence != last.link.prev.Segment || !f.closed {
			continue
		}
		w, err := openWindow(l.fs, f.path)
		if err != nil {
			return err
		}
		defer w.close()
		if next, err := w.next(f.seed(), f.end); err != nil || next == last.sequence {
			return err
		}
		return l.pool.writeSuccessor(successor{Pos{f.sequence, f.end}, last.sequence})
	}
	return nil
}

// checkTail decides about the bytes after x, where the valid records of the last segment
// end: they are the torn end of a write, or damage.
func (l *Log) checkTail(f *found, x int64, report *Report) error {
	from := x
	if f.closed {
		from += nextSize
	}
	w, err := openWindow(l.fs, f.path)
	if err != nil {
		return err
	}
	defer w.close()
	last, err := w.lastNonZero(from)
	if err != nil || last < 0 {
		return err
	}
	if !f.closed {
		proof, err := w.findProof(f.seed(), x, last+1)
		if err != nil {
			return err
		}
		if proof > 0 && l.lock == nil { // perhaps a server has written there meanwhile
			w.forget()
			if _, _, reason, err := w.record(f.seed(), x); err != nil || reason == "" {
				return err
			}
		}
		if proof > 0 {
			return f.corrupt(x, "no valid record, but a later one, at offset %d, proves that there was one", proof)
		}
	}
	t := Tear{File: f.path, Offset: from, Length: last + 1 - from, Closed: f.closed}
	if !f.closed {
		t.Records, err = w.countRecords(f.seed(), x+alignment, last+1)
	}
	report.Torn = append(report.Torn, t)
	return err
}
