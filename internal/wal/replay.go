package wal

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"sync"
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

	// Records is how many whole records are in it: what is before them may be damage,
	// which nothing proves.
	Records int
}

// defaultBlockSize is how many bytes are read at a time. With two processors, five blocks
// are in memory at once, with what they are decoded to. With blocks of a megabyte, a server
// with 100,000 jobs took twice as much memory at its start as later.
const defaultBlockSize = 256 << 10

// Replay reads all records of a log that was just opened. It can be called once,
// and must be before the log is written.
//
// Several goroutines call decode with blocks of records, about 256 KiB each. The
// calling goroutine calls apply with the results, in the order of the log. Payloads
// are valid until apply has returned. At most 2*Parallel+1 blocks are in memory at a
// time. An error of decode or apply ends Replay, which returns it as
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
	window        // of the segment, up to its end
	start   int64 // of data in the segment
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
	// The free blocks bound the memory. Each channel holds all blocks, so only
	// taking a free one can wait.
	n := 2*cmp.Or(l.opt.Parallel, runtime.GOMAXPROCS(0)) + 1
	free, inOrder := make(chan *block[T], n), make(chan *block[T], n)
	quit := make(chan struct{})
	for range n {
		free <- &block[T]{decoded: make(chan struct{}, 1)}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(quit)
	var readErr error // final when inOrder is closed
	wg.Go(func() {
		defer close(inOrder)
		readErr = readBlocks(l, free, quit, func(b *block[T]) {
			wg.Go(func() {
				b.check()
				if b.err == nil && len(b.records) > 0 {
					b.out, b.err = decode(b.records)
				}
				b.decoded <- struct{}{}
			})
			inOrder <- b
		})
	})

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
		end := b.start + int64(len(b.data))
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
		if reason := check(rec, seed, b.start+at); reason != "" {
			b.bad, b.data = reason, b.data[:at]
			return
		}
		payload := payloadOf(rec)
		at += Cost(n)
		switch {
		case !internal && !isFragment(rec): // a fragment comes alone
			b.records = append(b.records, Record{Pos{b.segment.sequence, b.start + at - Cost(n)}, payload})
		case internal && payload[0] == kindOldest:
			b.oldest = max(b.oldest, pointee(payload))
		case internal && payload[0] == kindClosing:
			b.closed, b.bad, b.data = true, "", b.data[:at]
			return
		}
	}
}

// readBlocks reads all segments and emits their blocks. It looks at lengths only; the
// goroutines that decode verify the checksums.
func readBlocks[T any](l *Log, free <-chan *block[T], quit <-chan struct{}, emit func(*block[T])) error {
	size := cmp.Or(l.opt.blockSize, defaultBlockSize)
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
				b.segment, b.start = f, off
				b.file, b.path, b.size = file, f.path, limit
				b.forget()
				if b.data, bad, err = b.window.records(off, limit, size); err != nil {
					file.Close()
					return err
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
