package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// check tests the invariants of segment.go and space.go.
func (l *Log) check() error {
	for i, s := range l.open {
		synced, flushed := s.synced.Load(), s.flushed.Load()
		if s.base > synced || synced > flushed || flushed > s.end || s.end > s.size {
			return fmt.Errorf("S1: segment %d: base %d, synced %d, flushed %d, end %d, size %d", s.sequence, s.base, synced, flushed, s.end, s.size)
		}
		if !s.closed && s.end+closingSize > s.size || i < len(l.open)-1 && !s.closed {
			return fmt.Errorf("S3: segment %d: end %d, size %d, closed %v", s.sequence, s.end, s.size, s.closed)
		}
		if s.base+int64(len(s.buf)) != s.end {
			return fmt.Errorf("S2: segment %d: base %d, %d bytes, end %d", s.sequence, s.base, len(s.buf), s.end)
		}
		if i > 0 && flushed != headerSize {
			return fmt.Errorf("segment %d is written before its predecessor is sealed", s.sequence)
		}
	}
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	prev := uint64(0)
	if active := l.active(); active != nil {
		prev = active.sequence
	}
	for _, s := range l.pool.preallocated {
		if s.sequence <= prev {
			return fmt.Errorf("preallocated segment %d after %d", s.sequence, prev)
		}
		prev = s.sequence
	}
	if l.err == nil && l.room() < l.reserved.Load() {
		return fmt.Errorf("R1: room %d, reserved %d", l.room(), l.reserved.Load())
	}
	return nil
}

const testDir = "/"

var testOptions = Options{SegmentSize: 1024, LogID: 7, Parallel: 2, blockSize: 200}

// payload returns record number i: its number, and a length that depends on it.
func payload(i int) string {
	n := i * 7919 % 97
	switch {
	case i%29 == 28:
		n = 2500 // larger than two segments
	case i%11 == 10:
		n = 400
	}
	return strconv.Itoa(i) + ":" + strings.Repeat(string(rune('a'+i%26)), n)
}

// replayAll reads the log into a list.
func replayAll(l *Log) (records []string, report Report, err error) {
	report, err = Replay(l, func(recs []Record) (list []string, err error) {
		for _, r := range recs {
			list = append(list, string(r.Payload))
		}
		return list, nil
	}, func(list []string) error {
		records = append(records, list...)
		return nil
	})
	return records, report, err
}

// A machine is an open log with its expected state. Records are numbered from 0; each is
// payload(its number).
type machine struct {
	fsys vfs.FS
	opt  Options
	log  *Log

	records []Pos // positions of all appended records
	ends    []Pos // end positions of the newest records
	durable int   // number of durable records
	// Records before gone are durably removed. Records before maybeGone are possibly
	// durably removed.
	gone, maybeGone int
	cameBack        int   // removed records before this one still exist, possibly only until the next start
	held            []int // numbers of records for which space is reserved
}

// open opens the log and compares its records with the expected ones.
func (m *machine) open() error {
	l, err := Open(m.fsys, testDir, m.opt)
	if err != nil {
		return err
	}
	var got []Record
	_, err = Replay(l, func(recs []Record) ([]Record, error) {
		var list []Record
		for _, r := range recs {
			list = append(list, Record{r.Pos, append([]byte(nil), r.Payload...)})
		}
		return list, nil
	}, func(list []Record) error {
		got = append(got, list...)
		return nil
	})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	last := max(m.maybeGone, m.cameBack)
	first := last
	if len(got) > 0 {
		number, _, _ := strings.Cut(string(got[0].Payload), ":")
		if first, err = strconv.Atoi(number); err != nil {
			return fmt.Errorf("a record that was never appended: %.20q", got[0].Payload)
		}
	}
	if first < m.gone || first > last {
		return fmt.Errorf("the first record is %d, want %d to %d", first, m.gone, last)
	}
	if first+len(got) < m.durable || first+len(got) > len(m.records) {
		return fmt.Errorf("records %d up to %d, of %d, %d durable", first, first+len(got), len(m.records), m.durable)
	}
	m.records = m.records[:first+len(got)]
	for i, r := range got {
		if string(r.Payload) != payload(first+i) {
			return fmt.Errorf("record %d is %.20q", first+i, r.Payload)
		}
		m.records[first+i] = r.Pos
	}
	m.log, m.durable, m.gone, m.maybeGone, m.held, m.ends = l, len(m.records), first, first, nil, nil
	m.cameBack = first
	for m.cameBack < len(m.records) && m.records[m.cameBack].Segment < l.removed {
		m.cameBack++
	}
	return l.check()
}

func (m *machine) reserve() error {
	n := len(m.records) + len(m.held)
	if err := m.log.Reserve(Cost(len(payload(n)))); err != nil {
		return err
	}
	m.held = append(m.held, n)
	return nil
}

// append appends the next record, with or without a reservation.
func (m *machine) append() error {
	if err := m.log.Err(); err != nil {
		return err
	}
	p := payload(len(m.records))
	if len(m.held) > 0 {
		m.log.Unreserve(Cost(len(p)))
		m.held = m.held[1:]
	}
	pos, err := m.log.Append([]byte(p[:1]), []byte(p[1:]))
	if err == nil {
		m.records = append(m.records, pos)
		m.ends = append(m.ends, Pos{m.log.active().sequence, m.log.active().end})
	}
	return err
}

func (m *machine) flush() error { return m.log.Flush() }

func (m *machine) sync() error {
	flushed := m.flushed()
	if err := m.log.Sync(); err != nil {
		return err
	}
	m.durable = flushed
	return m.agree()
}

// flushed returns the number of flushed records. (Positions of removed records can
// repeat: the sequences of an empty log start again.)
func (m *machine) flushed() int {
	n := len(m.records)
	for len(m.log.open) > 0 && n > m.durable {
		s := m.log.open[0]
		if m.records[n-1].Compare(Pos{s.sequence, s.flushed.Load()}) < 0 {
			break
		}
		n--
	}
	return n
}

// agree checks that Durable is not too high. A record is durable when its end is durable.
func (m *machine) agree() error {
	if len(m.log.open) == 0 || m.log.err != nil {
		return nil
	}
	synced := Pos{m.log.open[0].sequence, m.log.open[0].synced.Load()}
	first := len(m.records) - len(m.ends)
	for i, end := range m.ends {
		if d := m.log.Durable(); m.records[first+i].Compare(d) < 0 && end.Compare(synced) > 0 {
			return fmt.Errorf("record %d at %v is durable only up to %v, but Durable returns %v", first+i, m.records[first+i], synced, d)
		}
	}
	return nil
}

func (m *machine) recover() error {
	failed := m.log.Err() != nil
	next := m.durable
	err := m.log.Recover(func(from, to Pos, _ []byte) {
		for m.records[next] != from { // sealed before the failure, so it is durable
			next++
		}
		m.records[next] = to
		next++
	})
	if err == nil && failed {
		if next < len(m.records) && next != m.durable {
			return fmt.Errorf("records from %d of %d were not moved", next, len(m.records))
		}
		m.durable = len(m.records)
		m.ends = nil
	}
	return err
}

func (m *machine) remove() error {
	oldest, ok := m.log.Oldest()
	if !ok {
		return nil
	}
	if err := m.log.RemoveOldest(); err != nil {
		return err
	}
	for m.maybeGone < len(m.records) && m.records[m.maybeGone].Segment <= oldest.Sequence {
		m.maybeGone++
	}
	return nil
}

// prepare preallocates segments and removes the files of durably removed segments.
func (m *machine) prepare() error {
	_, waiting := m.log.RemovalPending()
	if err := m.log.Prepare(); err != nil {
		return err
	}
	if !waiting {
		m.gone = m.maybeGone
	}
	return nil
}

// reread reads all sealed segments again.
func (m *machine) reread() error {
	want := m.maybeGone
	for _, s := range m.log.sealed {
		for at, done := (Pos{Segment: s.Sequence}), false; !done; {
			var err error
			at, done, err = m.log.ReadSealed(at, 100, func(r Record) error {
				if want >= len(m.records) || r.Pos != m.records[want] || string(r.Payload) != payload(want) {
					return fmt.Errorf("read again: record at %v is %.20q, want %d", r.Pos, r.Payload, want)
				}
				want++
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *machine) close() error {
	if err := m.log.Close(); err != nil {
		return err
	}
	m.durable = len(m.records)
	return nil
}

// work performs random operations, which are the same for the same seed as long as
// nothing fails, and returns the first error. If heal is set, it tries to recover up to
// three times after a failure.
func (m *machine) work(rng *rand.Rand, steps int, heal bool) error {
	verbs := []func() error{m.append, m.append, m.append, m.append, m.flush, m.flush, m.sync, m.prepare, m.reserve, m.remove, m.reread}
	for range steps {
		err := verbs[rng.IntN(len(verbs))]()
		for try := 0; heal && err != nil && m.log.Err() != nil && try < 3; try++ {
			err = m.recover()
		}
		if err != nil && (m.log.Err() != nil || !heal) {
			return err
		}
		if err := errors.Join(m.log.check(), m.agree()); err != nil {
			return &brokenError{err}
		}
	}
	return m.close()
}

// A brokenError reports a violation of the log's promises.
type brokenError struct{ error }

func mustNotBreak(t *testing.T, err error) {
	t.Helper()
	var broken *brokenError
	if errors.As(err, &broken) {
		t.Fatal(err)
	}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }
