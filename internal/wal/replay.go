package wal

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// A Record is a record read from a log.
type Record struct {
	Pos
	Payload []byte
}

// A Report is the result of Replay.
type Report struct {
	Segments int
	Records  int
	Bytes    int64  // size of the segments up to their ends
	Torn     []Tear // the torn ends that were truncated; usually at most one
}

// A Tear is the incomplete end of a write that a crash interrupted, or bytes after the
// end of a closed log. Replay truncates it unless the log is read-only.
type Tear struct {
	File   string // path
	Offset int64  // the start of the torn write
	Length int64  // its length in bytes
	Closed bool   // the log was closed at Offset

	// Records is the number of complete records in the Tear. If it is not zero, the bytes
	// before them might be damaged, but there is no proof.
	Records int
}

// defaultBlockSize is the number of bytes per read. With two processors, up to five
// blocks and their decoded records are in memory at once. With blocks of a megabyte, a
// server with 100,000 jobs used twice as much memory during its start as later.
const defaultBlockSize = 256 << 10

// Replay reads all records of a log that was just opened. It must be called once, before
// the first write.
//
// Several goroutines call decode with blocks of records, about 256 KiB each. The calling
// goroutine calls apply with the results, in the order of the log. Payloads are valid
// until apply returns. At most 2*Parallel+1 blocks are in memory at a time. Replay stops
// at an error of decode or apply, and returns it unchanged.
//
// Replay truncates a torn tail and reports it; see the package comment. If there is
// damage, the error is a [*CorruptError]; earlier records might have been applied, and
// the disk is unchanged. After an error, the log can only be closed.
func Replay[T any](l *Log, decode func([]Record) (T, error), apply func(T) error) (Report, error) {
	if l.err != nil {
		return Report{}, l.err
	}
	if l.recovery == nil {
		return Report{}, errors.New("wal: second replay of a log")
	}
	report, err := replay(l, decode, apply)
	if err == nil {
		err = l.cleanUp(&report)
	}
	if err != nil {
		l.err = err
	}
	return report, err
}

// A block is a sequence of records. The reader passes it to a decoder, which passes it to
// the caller.
type block[T any] struct {
	segment *segmentInfo
	window        // window of the segment, up to its end
	start   int64 // offset of data in the segment
	data    []byte
	joined  Record // record that ends with the fragment in data; its payload is nil for other data
	bad     string // the reason why no record follows data, or empty

	records []Record
	oldest  uint64 // the highest sequence in its oldest records, or 0
	closed  bool   // the last record in it is the closing one
	out     T
	err     error
	decoded chan struct{} // receives one element once the fields above are final
}

func replay[T any](l *Log, decode func([]Record) (T, error), apply func(T) error) (Report, error) {
	var report Report
	var total, done int64
	for _, f := range l.recovery.segments {
		total += f.end
	}
	// The number of free blocks limits the memory. Each channel can contain all blocks,
	// so only a receive from free can block.
	n := 2*cmp.Or(l.opt.Parallel, runtime.GOMAXPROCS(0)) + 1
	free, inOrder := make(chan *block[T], n), make(chan *block[T], n)
	quit := make(chan struct{})
	for range n {
		free <- &block[T]{decoded: make(chan struct{}, 1)}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(quit)
	var readErr error // final once inOrder is closed
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

	segments := l.recovery.segments
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
		l.recovery.oldest = max(l.recovery.oldest, b.oldest)
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
			return report, nil // the log ends here; cleanUp classifies the rest
		case b.bad != "":
			return report, b.segment.corrupt(end, "%s before the end of the records at %d", b.bad, b.segment.end)
		case b.closed && end < b.segment.end:
			return report, b.segment.corrupt(end, "closing record before the end of the records at %d", b.segment.end)
		}
		free <- b
	}
	return report, readErr
}

// check checks the records of the block and lists the records that are not internal. It
// truncates the block after a closing record, which is always the last record.
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
		case !internal && !isFragment(rec): // a fragment is the only record of its block
			b.records = append(b.records, Record{Pos{b.segment.sequence, b.start + at - Cost(n)}, payload})
		case internal && payload[0] == kindOldest:
			b.oldest = max(b.oldest, pointee(payload))
		case internal && payload[0] == kindClosing:
			b.closed, b.bad, b.data = true, "", b.data[:at]
			return
		}
	}
}

// readBlocks reads all segments and emits their blocks. It reads only lengths; the
// decoding goroutines verify the checksums.
func readBlocks[T any](l *Log, free <-chan *block[T], quit <-chan struct{}, emit func(*block[T])) error {
	size := cmp.Or(l.opt.blockSize, defaultBlockSize)
	var join joiner
	for i := range l.recovery.segments {
		f := &l.recovery.segments[i]
		if f.end == 0 {
			continue // skipped by a link
		}
		file, err := l.fs.Open(f.path)
		if err != nil {
			return fmt.Errorf("wal: %w", err)
		}
		limit := f.end // a copy, because the consumer changes f.end
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
