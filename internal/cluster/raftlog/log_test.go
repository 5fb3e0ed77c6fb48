package raftlog

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
	"github.com/beanpole-mq/beanpole/internal/vfs"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// random runs a test with seeds.
func random(t *testing.T, test func(t *testing.T, rng *rand.Rand)) {
	seeds.Each(t, 50, func(t *testing.T, seed uint64) { test(t, rand.New(rand.NewPCG(seed, 0))) })
}

// A model is the expected content of a log.
type model struct {
	entries []Position // entries after cut, consecutive
	cut     Position
	hard    Position // term and commit of the hard state
	starts  uint64
}

func (m model) clone() model {
	m.entries = append([]Position(nil), m.entries...)
	return m
}

func (m *model) last() Position {
	if n := len(m.entries); n > 0 {
		return m.entries[n-1]
	}
	return m.cut
}

func (m *model) add(p Position) {
	m.entries = append(m.entries[:p.Index-m.cut.Index-1:p.Index-m.cut.Index-1], p)
}

func (m *model) cutAt(at Position) {
	if n := at.Index - m.cut.Index; n < uint64(len(m.entries)) {
		m.entries = m.entries[n:]
	} else {
		m.entries = nil
	}
	m.cut = at
}

// A pair is a log with its models after each record since the last sync.
type pair struct {
	t    *testing.T
	rng  *rand.Rand
	fsys vfs.FS
	log  *Log
	now  model
	past []model // models after each record that can be lost, starting with the last sync
	term uint64
}

func body(p Position) []byte {
	return fmt.Appendf(nil, "%d of %d %0*d", p.Index, p.Term, int(p.Index*7%400), 1)
}

func (p *pair) open() {
	p.t.Helper()
	log, err := Open(p.fsys, "/", Options{SegmentSize: 4096, Recent: 3000, LogID: p.rng.Uint64() | 1})
	if err != nil {
		p.t.Fatal(err)
	}
	p.log = log
}

func (p *pair) step(rec func(*model)) {
	rec(&p.now)
	p.past = append(p.past, p.now.clone())
}

// act performs a random operation. After an error, the returned function can be called
// again.
func (p *pair) act() func() error {
	switch r := p.rng.IntN(20); {
	case r < 11:
		return p.append()
	case r < 16:
		return p.sync
	case r < 18:
		return p.cut()
	case r < 19:
		p.step(func(m *model) { m.starts++ })
		return func() error {
			if p.log.State().Starts == p.now.starts {
				return nil // the segment exists; only the write has failed
			}
			return p.log.Start(p.now.starts)
		}
	default:
		return p.log.Prepare
	}
}

// actOn performs a random operation. In one of n operations, calls of the disk fail; the
// operation is repeated until it succeeds.
func (p *pair) actOn(faults *faultfs.FS, n int) {
	if p.rng.IntN(n) == 0 {
		faults.Set(faultfs.Fault{Op: faultfs.Change, N: 1 + p.rng.IntN(4), How: faultfs.How(p.rng.IntN(3))})
	}
	for act := p.act(); act() != nil; {
		for p.log.Recover() != nil {
		}
	}
	faults.Set()
}

func (p *pair) sync() error {
	err := p.log.Sync()
	if err == nil {
		p.past = append(p.past[:0], p.now.clone())
	}
	return err
}

func (p *pair) append() func() error {
	at := p.now.last().Index + 1
	if p.rng.IntN(5) == 0 { // a conflict
		p.term++
		at -= p.rng.Uint64N(at - p.now.cut.Index)
	}
	var entries []*raftpb.Entry
	for range p.rng.IntN(6) {
		pos := Position{Index: at, Term: p.term}
		entries = append(entries, &raftpb.Entry{Index: &pos.Index, Term: &pos.Term, Type: raftpb.EntryNormal.Enum(), Data: body(pos)})
		p.step(func(m *model) { m.add(pos) })
		at++
	}
	var hard *raftpb.HardState
	if p.rng.IntN(2) == 0 {
		hard = hardState(p.term, 3, p.now.cut.Index)
		p.step(func(m *model) { m.hard = Position{Index: hard.GetCommit(), Term: p.term} })
	}
	return func() error { return p.log.Append(hard, entries) }
}

func (p *pair) cut() func() error {
	at := p.now.cut
	switch n := len(p.now.entries); {
	case p.rng.IntN(10) == 0: // a journal that is ahead
		p.term++
		at = Position{Index: p.now.last().Index + 1 + p.rng.Uint64N(3), Term: p.term}
	case n > 0:
		at = p.now.entries[p.rng.IntN(n)]
	}
	p.step(func(m *model) { m.cutAt(at) })
	return func() error { return p.log.Cut(at) }
}

// holds returns the difference between a log and a model, or "".
func (p *pair) holds(m model) string {
	first, _ := p.log.FirstIndex()
	if first != m.cut.Index+1 || p.log.Last() != m.last() {
		return fmt.Sprintf("from %d to %v, want from %d to %v", first, p.log.Last(), m.cut.Index+1, m.last())
	}
	if term, err := p.log.Term(m.cut.Index); err != nil || term != m.cut.Term {
		return fmt.Sprintf("term of the cut is %d, %v, want %v", term, err, m.cut)
	}
	s := p.log.State()
	if got := (Position{Index: s.Hard.GetCommit(), Term: s.Hard.GetTerm()}); got != m.hard || s.Starts != m.starts {
		return fmt.Sprintf("hard state %v and start %d, want %v and %d", got, s.Starts, m.hard, m.starts)
	}
	if len(m.entries) == 0 {
		return ""
	}
	var got []*raftpb.Entry
	for next := first; next <= m.last().Index; {
		some, err := p.log.Entries(next, m.last().Index+1, p.rng.Uint64N(3000))
		if err != nil || len(some) == 0 {
			return fmt.Sprintf("entries from %d: %v", next, err)
		}
		got = append(got, some...)
		next += uint64(len(some))
	}
	for i, e := range got {
		want := m.entries[i]
		if (Position{Index: e.GetIndex(), Term: e.GetTerm()}) != want || string(e.GetData()) != string(body(want)) {
			return fmt.Sprintf("entry %d of %d is %q, want %v", e.GetIndex(), e.GetTerm(), e.GetData(), want)
		}
		if term, err := p.log.Term(want.Index); err != nil || term != want.Term {
			return fmt.Sprintf("term of %d is %d, %v, want %d", want.Index, term, err, want.Term)
		}
	}
	return ""
}

// check compares the log with its model.
func (p *pair) check() {
	p.t.Helper()
	if diff := p.holds(p.now); diff != "" {
		p.t.Fatal(diff)
	}
}

// After a power cut at any operation, the reopened log is a prefix of the written records
// and contains every synced record.
func TestPowerCuts(t *testing.T) {
	random(t, func(t *testing.T, rng *rand.Rand) {
		disk := memfs.New()
		p := &pair{t: t, rng: rng, fsys: disk, term: 1, past: []model{{}}}
		for range 4 {
			p.open()
			p.find()
			disk.CutAt(disk.Ops() + 1 + rng.IntN(150))
			for p.act()() == nil {
				if rng.IntN(8) == 0 {
					p.check()
				}
			}
			disk = disk.Crash(rng)
			p.fsys = disk
		}
	})
}

// find finds the last record that survived in the log.
func (p *pair) find() {
	p.t.Helper()
	var diffs []string
	for i := len(p.past) - 1; i >= 0; i-- {
		diff := p.holds(p.past[i])
		if diff == "" {
			p.now = p.past[i].clone()
			p.past = p.past[:i+1] // still not durable
			return
		}
		diffs = append(diffs, diff)
	}
	p.t.Fatalf("the log has no state since the last sync: %q", diffs)
}

// A log whose calls fail heals without losing records.
func TestFailingCalls(t *testing.T) {
	random(t, func(t *testing.T, rng *rand.Rand) {
		faults := faultfs.New(memfs.New())
		p := &pair{t: t, rng: rng, fsys: faults, term: 1, past: []model{{}}}
		p.open()
		for range 60 {
			p.actOn(faults, 4)
			p.check()
		}
		for p.log.Close() != nil {
			if err := p.log.Recover(); err != nil {
				t.Fatal(err)
			}
		}
		p.open()
		p.check()
	})
}

// While the owner appends, overrides, cuts, removes segments and heals, a reader always
// gets consecutive entries, or the error that they were cut or do not exist.
func TestConcurrentReaders(t *testing.T) {
	random(t, func(t *testing.T, rng *rand.Rand) {
		faults := faultfs.New(memfs.New())
		p := &pair{t: t, rng: rng, fsys: faults, term: 1}
		p.open()
		stop, stopped := make(chan struct{}), make(chan error)
		seed := rng.Uint64()
		go func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			for {
				select {
				case <-stop:
					stopped <- nil
					return
				default:
				}
				first, _ := p.log.FirstIndex()
				lo := first + rng.Uint64N(max(first, p.log.Last().Index)-first+1)
				entries, err := p.log.Entries(lo, lo+1+rng.Uint64N(4), rng.Uint64N(3000))
				if err != nil && err != raft.ErrCompacted && err != raft.ErrUnavailable {
					stopped <- err
					return
				}
				for i, e := range entries {
					at := Position{Index: e.GetIndex(), Term: e.GetTerm()}
					if at.Index != lo+uint64(i) || string(e.GetData()) != string(body(at)) || i > 0 && at.Term < entries[i-1].GetTerm() {
						stopped <- fmt.Errorf("entry %d from %d is %v with %q", i, lo, at, e.GetData())
						return
					}
				}
			}
		}()
		for range 200 {
			p.actOn(faults, 8)
			if err := errors.Join(p.log.Sync(), p.log.Prepare()); err != nil {
				t.Fatal(err)
			}
		}
		close(stop)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

// An openHook is a file system that calls a function before it opens a file for reading.
type openHook struct {
	vfs.FS
	before func()
}

func (h *openHook) Open(name string) (vfs.File, error) {
	h.before()
	return h.FS.Open(name)
}

// If entries are cut and their segment is removed during a read, the read returns the
// error for cut entries.
func TestCutWhileReading(t *testing.T) {
	disk := &openHook{memfs.New(), func() {}}
	log := openUncut(t, disk, "/", Options{SegmentSize: 32 << 10, Recent: 1000}, 2000)
	disk.before = func() {
		disk.before = func() {}
		at := Position{Index: 1500, Term: 1}
		if err := errors.Join(log.Cut(at), log.Sync(), log.Cut(at), log.Prepare()); err != nil {
			t.Error(err)
		}
	}
	if entries, err := log.Entries(10, 20, 1000); err != raft.ErrCompacted {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	if entries, err := log.Entries(1501, 1520, 1000); err != nil || len(entries) == 0 {
		t.Errorf("%d entries after the cut, %v", len(entries), err)
	}
}

// The members and the records about peers survive the removal of the segments in which
// they were first written.
func TestStateOutlivesCuts(t *testing.T) {
	p := &pair{t: t, rng: rand.New(rand.NewPCG(1, 1)), fsys: memfs.New(), term: 1}
	p.open()
	conf := &raftpb.ConfState{Voters: []uint64{1, math.MaxUint64}, Learners: []uint64{9}}
	members := []MemberInfo{{1, 1, "127.0.0.1:1", 0}, {math.MaxUint64, 2, "", 0}, {9, 3, "[::1]:9", math.MaxUint64}}
	peer := Peer{Starts: 7, Name: 6, Acknowledged: Position{Index: 8, Term: 9}}
	if err := errors.Join(p.log.SetMembership(Membership{conf, 77, members, 4}), p.log.SetPeer(9, peer), p.log.SetFatalReason("a copy")); err != nil {
		t.Fatal(err)
	}
	for n := range uint64(40) {
		if err := p.log.Start(n); err != nil {
			t.Fatal(err)
		}
	}
	segments := func() int { return p.log.wal.Stats().Segments }
	for range 50 {
		if err := errors.Join(p.append()(), p.log.Sync()); err != nil {
			t.Fatal(err)
		}
	}
	before := segments()
	if err := errors.Join(p.log.Cut(p.now.last()), p.log.Sync(), p.log.Prepare()); err != nil {
		t.Fatal(err)
	}
	if segments() >= before || before < 4 {
		t.Errorf("%d segments, and %d after the cut", before, segments())
	}
	if err := p.log.Close(); err != nil {
		t.Fatal(err)
	}
	p.open()
	s := p.log.State()
	if !proto.Equal(s.Roles, conf) || !reflect.DeepEqual(s.Members, members) || s.Peers[9] != peer || s.Starts != 40 || s.FatalReason != "a copy" || len(s.Names) != maxNames || s.Names[maxNames-1] != 39 || s.RolesIndex != 77 || s.LastNumber != 4 {
		t.Errorf("the reopened state is %+v", s)
	}
}

// Requests outside the log are answered as Raft expects.
func TestBounds(t *testing.T) {
	p := &pair{t: t, rng: rand.New(rand.NewPCG(1, 1)), fsys: memfs.New(), term: 1}
	p.open()
	for p.now.last().Index < 9 {
		if err := p.append()(); err != nil {
			t.Fatal(err)
		}
	}
	at := p.now.entries[4]
	if err := p.log.Cut(at); err != nil {
		t.Fatal(err)
	}
	last := p.log.Last().Index
	if _, err := p.log.Entries(at.Index, at.Index+2, 100); err != raft.ErrCompacted {
		t.Errorf("an entry that is cut: %v", err)
	}
	if _, err := p.log.Entries(last, last+2, 100); err != raft.ErrUnavailable {
		t.Errorf("an entry after the end: %v", err)
	}
	if _, err := p.log.Term(at.Index - 1); err != raft.ErrCompacted {
		t.Errorf("the term of an entry before the cut: %v", err)
	}
	if _, err := p.log.Term(last + 1); err != raft.ErrUnavailable {
		t.Errorf("the term of an entry after the end: %v", err)
	}
	if _, err := p.log.Snapshot(); err != raft.ErrSnapshotTemporarilyUnavailable {
		t.Errorf("a snapshot: %v", err)
	}
}

// Records of another version, or truncated records, cause errors and never a panic.
func FuzzRecord(f *testing.F) {
	f.Add(appendEntry(nil, &raftpb.Entry{Index: proto.Uint64(1), Term: proto.Uint64(1)}))
	f.Add(appendHard(nil, hardState(1, 2, 3)))
	f.Add(appendState(nil, &State{
		Membership: Membership{&raftpb.ConfState{Voters: []uint64{1}}, 0, []MemberInfo{{1, 2, "a:1", 3}}, 4},
		Starts:     300, Names: []uint64{7}, FatalReason: "a copy", Peers: map[uint64]Peer{1: {2, 5, Position{3, 4}}},
	}))
	f.Add([]byte{9})
	f.Fuzz(func(t *testing.T, payload []byte) {
		if len(payload) == 0 {
			return // the wal never returns such records
		}
		if payload[0] == kindEntry {
			if e, err := decodeEntry(payload); err == nil {
				again, err := decodeEntry(append(appendEntry(nil, e), e.GetData()...))
				if err != nil || !proto.Equal(e, again) {
					t.Errorf("%v came back as %v, %v", e, again, err)
				}
			}
			return
		}
		var s State
		if err := decodeState(&s, payload); err != nil && !errors.Is(err, errRecord) {
			t.Errorf("the error %v has no reason", err)
		}
	})
}

// A log that has filled the disk can be cut and then continues, regardless of its
// position in the segment, and even after a restart.
func TestFullDiskIsCut(t *testing.T) {
	for size := range 100 {
		disk := memfs.New()
		disk.SetLimit(64 << 10)
		var log *Log
		open := func() {
			var err error
			if log, err = Open(disk, "/", Options{SegmentSize: 8 << 10, Recent: 1 << 10}); err != nil {
				t.Fatal(err)
			}
		}
		open()
		members := []MemberInfo{{1, 1, "10.0.0.1:11400", 0}, {2, 2, "10.0.0.2:11400", 0}}
		if err := log.SetMembership(Membership{&raftpb.ConfState{Voters: []uint64{1, 2}}, 0, members, 2}); err != nil {
			t.Fatal(err)
		}
		fill := func() (last uint64) {
			var err error
			for !IsFull(err) {
				if err != nil {
					t.Fatal(err)
				}
				last = log.Last().Index
				err = log.Append(nil, []*raftpb.Entry{entryWith(last+1, 500+size)})
			}
			return last
		}
		for again := range 2 {
			full := fill()
			if again > 0 {
				if err := log.Close(); err != nil {
					t.Fatal(err)
				}
				open()
				if err := log.Start(2); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(log.Cut(Position{Index: full, Term: 1}), log.Recover(), log.Recover(), log.Prepare()); err != nil {
				t.Fatalf("with entries of %d bytes: %v", 500+size, err)
			}
			if last := fill(); last < full+20 {
				t.Fatalf("with entries of %d bytes only %d fit after a cut", 500+size, last-full)
			}
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// entryWith returns an entry of term 1.
func entryWith(index uint64, size int) *raftpb.Entry {
	return &raftpb.Entry{Index: &index, Term: proto.Uint64(1), Data: make([]byte, size)}
}
