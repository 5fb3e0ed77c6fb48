package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/cluster/status"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/ledger"
	"github.com/beanpole-mq/beanpole/internal/vfs/memfs"
)

const dir = "/"

// A world is machines with disks, and a network between them, in a synctest bubble: time is fake.
type world struct {
	t     *testing.T
	start time.Time
	opt   Options // of all members, but for what is a machine's own

	mu       sync.Mutex
	rng      *rand.Rand
	machines []*machine
	cut      map[[2]uint64]bool // the way from one to another is cut
	told
	plant      plant
	offOf      uint64                     // the clock of this machine is wrong
	lagged     time.Duration              // how far the cluster's time was behind when all lost their power: their clocks make up for it
	stop       func()                     // ends the load; nil: there is none
	sent       func()                     // a member has sent a snapshot; nil: nobody wants to know
	silent     atomic.Bool                // who is asked for a snapshot next sends nothing
	laterRoles atomic.Bool                // snapshots say that their roles are those of a later entry
	lose       func(*raftpb.Message) bool // whether a message is lost; nil: none is. With mu

	clockRead func() // a member looks at its clock; nil: nobody wants to know

	refusals bool // a machine refuses connections when its process is dead
	patient  bool // connections outlive short cuts

	logMu sync.Mutex // not mu: a member may log while it is asked something under mu
	log   strings.Builder
}

// A machine has a disk and, while it is up, a member.
type machine struct {
	w    *world
	id   uint64
	disk *memfs.FS
	off  time.Duration // its clock is so much ahead

	// With world.mu.
	member *Member // nil: it is down
	life   int
	ways   map[uint64]*way // to other machines
	peers  []uint64        // those that it connects to

	gone    bool         // its member was removed
	deposed atomic.Int32 // how often its clients were closed
	trouble trouble
}

// A way is what connects a machine to another one, in one direction: two connections, of which each delivers in order.
type way struct {
	lives             [2]int // of both ends, at the handshake
	messages, entries lane   // without entries, and with them

	acknowledged raftlog.Position // the highest, in the latest term in which something was
}

// A lane is a connection. What it has sent over a way that is cut it sends again, after pauses that double, as TCP does; or
// it breaks, and all that is under way is lost.
type lane struct {
	underWay []parcel // in order
	pause    time.Duration
}

type parcel struct {
	msg  *raftpb.Message
	b    []byte        // what it was when it was sent; empty: a ping
	life int           // of the machine that has sent it
	at   time.Duration // when it arrives
}

const (
	firstPause = 200 * time.Millisecond
	lastPause  = 8 * firstPause // after that the connection has been silent for too long
)

func newWorld(t *testing.T, seed uint64, n int) *world {
	w := emptyWorld(t, seed)
	w.grow(n)
	return w
}

// inWorld runs a test among so many members. In the end all have the same queue, and it is
// one that clients may see.
func inWorld(t *testing.T, n int, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, n)
		test(t, w)
		w.audit()
		w.close()
	})
}

func emptyWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, start: time.Now(), rng: rand.New(rand.NewPCG(seed, 1)), cut: map[[2]uint64]bool{}, told: told{asked: ledger.New[string](), due: map[uint64]time.Duration{}}}
	w.opt.Log.SegmentSize, w.opt.Journal.SegmentSize = 256<<10, 256<<10 // disks are memory here
	return w
}

// grow adds machines until there are n members.
func (w *world) grow(n int) {
	w.t.Helper()
	for len(w.machines) < n {
		m := w.machine()
		if len(w.machines) > 1 {
			w.join(m)
			continue
		}
		w.must(Init(m.disk, dir, m.self()))
		m.boot()
		w.leader()
	}
}

func (w *world) machine() *machine {
	m := &machine{w: w, id: uint64(len(w.machines) + 1), disk: memfs.New(), ways: map[uint64]*way{}}
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.id == w.offOf {
		m.off = time.Duration(w.rng.Int64N(int64(48*time.Hour))) - 24*time.Hour
	}
	w.machines = append(w.machines, m)
	return m
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.fatalf("%v", err)
	}
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	if w.plant != "" {
		panic(found(fmt.Sprintf(format, args...)))
	}
	w.logMu.Lock()
	defer w.logMu.Unlock()
	w.t.Fatalf("%s\nlog:\n%s", fmt.Sprintf(format, args...), w.log.String())
}

// Write takes lines of the log.
func (w *world) Write(b []byte) (int, error) {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	fmt.Fprintf(&w.log, "%6d ms %s", time.Since(w.start).Milliseconds(), b)
	return len(b), nil
}

// logged returns how often the log has a text.
func (w *world) logged(text string) int {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	return strings.Count(w.log.String(), text)
}

func (m *machine) self() raftlog.Member {
	return raftlog.Member{ID: m.id, Address: fmt.Sprintf("10.0.0.%d:11400", m.id)}
}

// join adds a machine to the cluster, and waits until it is a voter.
func (w *world) join(m *machine) {
	w.t.Helper()
	w.joinAs(m, m.self())
}

func (w *world) joinAs(m *machine, self raftlog.Member) {
	w.t.Helper()
	var l *Member
	w.until("the member is added", func() bool {
		l = w.leader()
		return l.Add(w.t.Context(), self) == nil
	})
	w.must(Join(m.disk, dir, l.Membership()))
	m.boot()
	w.until("the member is a voter", func() bool { return w.roleOf(m.id) == status.Voter })
}

func (w *world) roleOf(id uint64) status.Role {
	s, err := w.leader().Status()
	w.must(err)
	for _, k := range s.Members {
		if k.ID == id {
			return k.Role
		}
	}
	return ""
}

// boot starts the member of a machine.
func (m *machine) boot() {
	m.w.t.Helper()
	m.w.must(m.start())
}

func (m *machine) start() error {
	fmt.Fprintf(m.w, "%d starts\n", m.id)
	o := m.w.opt
	o.FS, o.Dir, o.Self, o.Transport = &troubledFS{m.disk, &m.trouble}, dir, m.self(), m
	o.Now = func() int64 {
		if m.w.clockRead != nil {
			m.w.clockRead()
		}
		return int64(time.Since(m.w.start)) + 1
	}
	o.Wall = func() int64 { return time.Now().Add(m.off).UnixNano() }
	o.Deposed = func() {
		m.deposed.Add(1)
		m.w.mu.Lock()
		member := m.member
		m.w.mu.Unlock()
		if m.w.plant == keptEngine && member != nil {
			member.forgetLost()
		}
	}
	switch m.w.plant {
	case skippedEntry:
		o.testHook = skipLast
	case unsyncedMark:
		m.trouble.late = func(name string) time.Duration { return lateIf(isOfJournal(name)) }
	case earlyAnswer:
		m.trouble.late = func(name string) time.Duration { return lateIf(!isOfJournal(name)) }
	}
	o.Fetch = m.fetch
	o.FastFailover = true
	o.Logger = slog.New(slog.NewTextHandler(m.w, &slog.HandlerOptions{Level: slog.LevelDebug})).With("member", m.id)
	member, err := Open(o)
	if err != nil {
		return err
	}
	if m.w.plant == followerTick {
		member.done.Go(member.tickOn)
	}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	m.member = member
	m.life++
	m.ping(m.life)
	return nil
}

// ping says something to all that this machine connects to, again and again, as connections do: so it hears of those to which it sends
// no messages of Raft. With world.mu.
func (m *machine) ping(life int) {
	for _, id := range m.peers {
		if to := int(id) - 1; id != m.id && to < len(m.w.machines) {
			m.post(m.w.machines[to], &m.way(id).messages, nil, life)
		}
	}
	time.AfterFunc(500*time.Millisecond, func() {
		m.w.mu.Lock()
		defer m.w.mu.Unlock()
		if m.life == life && m.member != nil {
			m.ping(life)
		}
	})
}

// fetch connects to another machine, for a snapshot.
func (m *machine) fetch(ctx context.Context, from uint64) (io.ReadCloser, error) {
	w := m.w
	w.mu.Lock()
	member := w.machines[from-1].member
	cut := w.cut[[2]uint64{from, m.id}]
	w.mu.Unlock()
	if member == nil || cut {
		return nil, errors.New("no route to host")
	}
	r, to := io.Pipe()
	if w.silent.Swap(false) {
		return r, nil
	}
	go func() { to.CloseWithError(w.sendSnapshot(member, m.id, to)) }()
	return struct {
		io.Reader
		io.Closer
	}{slow{r}, r}, nil
}

// sendSnapshot lets a member send a snapshot to another one.
func (w *world) sendSnapshot(member *Member, to uint64, conn io.Writer) error {
	defer func() {
		if w.sent != nil {
			w.sent()
		}
	}()
	switch w.plant {
	case ofEngine:
		return member.sendEngine(conn, 0)
	case claimsMore:
		return member.sendEngine(conn, 1)
	}
	if w.laterRoles.Load() {
		b, g, err := member.openSnapshot()
		if err != nil {
			return err
		}
		defer b.Close()
		g.RolesIndex += 1000
		return errors.Join(writeMembership(conn, g), b.Write(conn))
	}
	return member.SendSnapshot(to, conn)
}

// slow is a connection that takes its time.
type slow struct{ io.Reader }

func (s slow) Read(b []byte) (int, error) {
	time.Sleep(3 * time.Millisecond)
	return s.Reader.Read(b[:min(len(b), 32<<10)])
}

// Send is part of Transport.
func (m *machine) Send(messages []*raftpb.Message) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	life := m.life
	for _, msg := range messages {
		m.send(msg, life)
	}
}

func (m *machine) send(msg *raftpb.Message, life int) {
	w := m.w
	to := int(msg.GetTo()) - 1
	if to >= len(w.machines) || w.lose != nil && w.lose(msg) {
		return
	}
	way := m.way(msg.GetTo())
	l := &way.messages
	if len(msg.GetEntries()) > 0 {
		l = &way.entries
	}
	m.post(w.machines[to], l, msg, life)
}

// encode returns the bytes of a message, the same for the same; none for none.
func encode(msg *raftpb.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(msg)
	if err != nil {
		panic(err)
	}
	return b
}

// post sends a parcel, with world.mu.
func (m *machine) post(to *machine, l *lane, msg *raftpb.Message, life int) {
	w := m.w
	if !w.patient && w.cut[[2]uint64{m.id, to.id}] {
		return
	}
	at := time.Since(w.start) + 100*time.Microsecond + time.Duration(w.rng.IntN(400))*time.Microsecond
	l.underWay = append(l.underWay, parcel{msg, encode(msg), life, at})
	if len(l.underWay) == 1 {
		m.expect(to, l)
	}
}

// expect lets the first parcel of a lane arrive when it is time.
func (m *machine) expect(to *machine, l *lane) {
	time.AfterFunc(l.underWay[0].at-time.Since(m.w.start), func() { m.arrive(to, l) })
}

// arrive delivers the first parcel of a lane, unless the way is cut.
func (m *machine) arrive(to *machine, l *lane) {
	w := m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	first := l.underWay[0]
	if !bytes.Equal(encode(first.msg), first.b) {
		w.wrong = fmt.Errorf("member %d has changed a message after it was sent: %v", m.id, first.msg)
	}
	switch {
	case !w.cut[[2]uint64{m.id, to.id}]:
		w.mu.Unlock()
		m.deliver(to, first.b, first.life)
		w.mu.Lock()
		l.pause, l.underWay = 0, l.underWay[1:]
	case w.patient && l.pause < lastPause:
		l.pause = max(2*l.pause, firstPause)
		l.underWay[0].at += l.pause
	default:
		l.pause, l.underWay = 0, nil
	}
	if len(l.underWay) > 0 {
		m.expect(to, l)
	}
}

func (m *machine) way(to uint64) *way {
	if m.ways[to] == nil {
		m.ways[to] = new(way)
	}
	return m.ways[to]
}

// SetMembers is part of Transport: members that are none any more have to connect again.
func (m *machine) SetMembers(members []raftlog.Member) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	m.peers = m.peers[:0]
	for _, k := range members {
		m.peers = append(m.peers, k.ID)
	}
	for _, o := range m.w.machines {
		if !slices.ContainsFunc(members, func(k raftlog.Member) bool { return k.ID == o.id }) {
			delete(o.ways, m.id)
		}
	}
}

// deliver brings a message to another machine, after both have said who they are.
func (m *machine) deliver(to *machine, b []byte, life int) {
	w := m.w
	w.mu.Lock()
	way := m.way(to.id)
	from, member := m.member, to.member
	lives := [2]int{m.life, to.life}
	known := way.lives == lives
	w.mu.Unlock()
	if from == nil || member == nil || lives[0] != life {
		return
	}
	if !known {
		if w.plant == forgottenPeer || w.plant == namelessStart {
			member.forget(m.id, w.plant == forgottenPeer)
			from.forget(to.id, w.plant == forgottenPeer)
		}
		if err := member.AcceptHandshake(m.id, from.Handshake()); err != nil {
			from.Rejected(to.id, err)
			return
		}
		if from.AcceptHandshake(to.id, member.Handshake()) != nil {
			return
		}
		w.mu.Lock()
		way.lives = lives
		w.mu.Unlock()
	}
	if len(b) == 0 {
		return
	}
	msg := new(raftpb.Message)
	if err := proto.Unmarshal(b, msg); err != nil {
		panic(err)
	}
	w.hear(way, msg)
	member.Step(msg)
}

// hear notes what a member acknowledges to a leader. One that rejects it later in the same term has lost it, and the leader would send
// it at once, again and again.
func (w *world) hear(way *way, msg *raftpb.Message) {
	if msg.GetType() != raftpb.MsgAppResp {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	at := raftlog.Position{Index: msg.GetIndex(), Term: msg.GetTerm()}
	switch {
	case !msg.GetReject():
		if at.After(way.acknowledged) {
			way.acknowledged = at
		}
	case at.Term == way.acknowledged.Term && !at.After(way.acknowledged):
		w.wrong = fmt.Errorf("member %d has lost entry %v, which it has acknowledged to member %d", msg.GetFrom(), at, msg.GetTo())
	}
}

// keptAll is the luck of a disk that keeps all that was written.
func keptAll() *rand.Rand { return rand.New(keep{}) }

// keep draws what leaves everything that was written to a disk.
type keep struct{}

func (keep) Uint64() uint64 { return 1 << 62 } // the second of the six kinds of luck of memfs

// kill ends the process of a machine without a word; if power is set, the machine loses its power.
func (m *machine) kill(power bool) {
	w := m.w
	fmt.Fprintf(w, "%d is killed; power %v\n", m.id, power)
	w.mu.Lock()
	member := m.member
	m.member = nil
	m.life++
	luck := keptAll()
	if power {
		luck = w.rng
	}
	m.disk.Cut() // nothing that the process does from now on is on the disk of the next one
	m.disk = m.disk.Crash(luck)
	w.mu.Unlock()
	m.trouble.goOn() // nothing waits for the disk any more
	if member != nil {
		w.disconnect(m)
		w.refuse(m, member.Lead().Term)
		member.Close() // of its goroutines; its disk is not that of the machine any more
	}
}

// disconnect lets the others notice that their connections to a machine have ended.
func (w *world) disconnect(m *machine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.machines {
		if o.member != nil {
			o.member.Unreachable(m.id)
		}
	}
}

// refuse lets the others notice that a machine refuses connections, if it does and not the whole machine is down.
func (w *world) refuse(m *machine, term uint64) {
	if !w.refusals {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.machines {
		if o.member != nil {
			o.member.Refused(m.id, term)
		}
	}
}

// leader waits until a member is active, and returns it.
func (w *world) leader() *Member {
	w.t.Helper()
	var leader *Member
	w.until("somebody leads", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		var term uint64
		leader = nil
		for _, m := range w.machines {
			if m.member == nil {
				continue
			}
			if l := m.member.Lead(); l.Epoch != 0 && l.Term > term {
				leader, term = m.member, l.Term
			}
		}
		return leader != nil
	})
	return leader
}

func (w *world) machineOf(member *Member) *machine { return w.machines[member.opt.Self.ID-1] }

// checkPhases fails if a member contradicts its phase.
func (w *world) checkPhases() {
	for _, m := range w.machines {
		w.mu.Lock()
		member := m.member
		w.mu.Unlock()
		if member != nil {
			w.must(member.checkPhase())
		}
	}
}

// until lets fake time go on until something is so.
func (w *world) until(what string, so func() bool) {
	w.t.Helper()
	for range 3000 {
		if so() {
			return
		}
		if err := w.whatIsWrong(); err != nil {
			w.fatalf("%v", err)
		}
		w.checkPhases()
		time.Sleep(10 * time.Millisecond)
	}
	for _, m := range w.machines {
		if m.member != nil {
			s, err := m.member.Status()
			fmt.Fprintf(w, "%d: %+v %v %v applied %v\n", m.id, s, err, m.member.Err(), m.applied())
		}
	}
	w.fatalf("after 30 s it is not so that %s", what)
}

// part cuts both ways between a machine and all others.
func (w *world) part(m *machine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.machines {
		if o != m {
			w.cut[[2]uint64{m.id, o.id}], w.cut[[2]uint64{o.id, m.id}] = true, true
		}
	}
}

func (w *world) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.cut)
}

// What clients were told.
type told struct {
	asked *ledger.Ledger[string]   // by what keyOf says of their bodies, which are all different
	puts  int                      // so many were sent
	due   map[uint64]time.Duration // not before then is a job ready that was acknowledged

	term   uint64        // the highest in which a worker was answered
	termAt time.Duration // when it was for the first time
	wrong  error         // what was found to be wrong with a message or a term
}

// keyOf returns a body by which the ledger knows a job, or what stands for a long one.
func keyOf(body []byte) string {
	if len(body) > 64 {
		return fmt.Sprintf("%x, %s", sha256.Sum256(body), body[len(body)-16:])
	}
	return string(body)
}

// put puts a job at a member, and reports whether that was acknowledged.
func (w *world) put(m *Member, tube string, spec engine.Spec, text string) (id uint64, err error) {
	w.mu.Lock()
	w.puts++
	body := fmt.Appendf(nil, "%s, put %d", text, w.puts)
	w.mu.Unlock()
	outcome, began := engine.Failed, time.Since(w.start)
	w.asked.Put(keyOf(body))
	err = m.Broker().Call(func(e *engine.Engine, now int64) {
		id, outcome = e.PutInto(now, []byte(tube), spec, body)
	})
	if err == nil && outcome != engine.OK {
		return 0, fmt.Errorf("the put is refused: %d", outcome)
	}
	if err == nil {
		w.asked.Inserted(keyOf(body), id)
		w.mu.Lock()
		defer w.mu.Unlock()
		if tube == laterTube {
			w.due[id] = began + time.Duration(spec.Delay)*time.Second
		}
	}
	return id, err
}

// answered notes that what a worker began at some time was answered in a term: none that is begun later is in an earlier one.
func (l *told) answered(term uint64, began, now time.Duration) {
	switch {
	case term > l.term:
		l.term, l.termAt = term, now
	case term < l.term && began > l.termAt:
		l.wrong = fmt.Errorf("what was begun at %v was answered in term %d, and at %v somebody was answered in term %d", began, term, l.termAt, l.term)
	}
}

// laterTube has jobs with delays that nobody kicks or reserves.
const laterTube = "later"

// preload puts so many jobs that a walk takes several turns.
func (w *world) preload(jobs int) {
	const turn = 400
	for n := 0; n < jobs; n += turn {
		w.must(w.leader().Broker().Call(func(e *engine.Engine, now int64) {
			for i := range turn {
				w.putOld(e, now, "old", engine.Spec{TTR: 60}, n+i)
			}
		}))
	}
}

// putOld puts a job where nobody can be deposed before it is acknowledged.
func (w *world) putOld(e *engine.Engine, now int64, tube string, spec engine.Spec, n int) {
	body := fmt.Sprintf("old job %d", n)
	w.asked.Put(body)
	id, _ := e.PutInto(now, []byte(tube), spec, []byte(body))
	w.asked.Inserted(body, id)
}

// behind is how far the time of a member may be behind: it goes a sixteenth slower while it hears late from the leader, for the
// seconds that a mishap lasts.
const behind = 250 * time.Millisecond

// checkDelays checks that no delay has ended too soon.
func (w *world) checkDelays() {
	l := w.leader()
	w.mu.Lock()
	due := maps.Clone(w.due)
	w.mu.Unlock()
	var early string
	l.Broker().Look(func(e *engine.Engine, _ int64) {
		for id, at := range due {
			if c, ok := e.Snapshot(id); ok && c.State == engine.Ready && time.Since(w.start) < at-behind-w.lagged {
				early = fmt.Sprintf("job %d is ready at member %d %v too soon", id, l.opt.Self.ID, at-time.Since(w.start))
			}
		}
	})
	if early != "" {
		w.fatalf("%s", early)
	}
}

// acknowledged returns how many puts were acknowledged.
func (w *world) acknowledged() int {
	puts, _ := w.asked.Acknowledged()
	return puts
}

// whatIsWrong returns what was found to be wrong.
func (w *world) whatIsWrong() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.wrong, w.asked.Err())
}

// delete deletes some job at a member.
func (w *world) delete(m *Member) error {
	var key string
	err := m.Broker().Call(func(e *engine.Engine, _ int64) {
		if c, _, ok := e.NextSnapshot(0); ok && e.DeleteJob(c.ID) == engine.OK {
			key = keyOf(c.Body)
			w.asked.Delete(key)
		}
	})
	if err == nil && key != "" {
		w.asked.Deleted(key)
	}
	return err
}

// audit waits until all members that are up have the same, and holds that against the ledger.
func (w *world) audit() {
	w.t.Helper()
	w.until("all have applied what is committed", func() bool {
		synctest.Wait()
		var s Status
		l := w.leader()
		if !l.inLoop(func() { s = l.raft.status() }) { // what Status says may be old
			return false
		}
		for _, m := range w.machines {
			if m.member != nil && m.applied() != s.Commit {
				return false
			}
		}
		return true
	})
	var want uint64
	for _, m := range w.machines {
		if m.member == nil {
			continue
		}
		digest := m.digest()
		if want == 0 {
			want = digest
		}
		if digest != want {
			w.fatalf("member %d has another queue than the first one:\n%s", m.id, w.difference(m))
		}
	}
	for _, m := range w.machines {
		if m.member != nil {
			m.check()
		}
	}
}

// difference says how the queue of a machine differs from that of the first one that is up.
func (w *world) difference(m *machine) string {
	var first *machine
	for _, o := range w.machines {
		if first == nil && o.member != nil {
			first = o
		}
	}
	a, b := first.jobs(), m.jobs()
	var out strings.Builder
	for id, text := range a {
		if b[id] != text {
			fmt.Fprintf(&out, "member %d: %s\nmember %d: %s\n", first.id, text, m.id, b[id])
		}
	}
	for id, text := range b {
		if a[id] == "" {
			fmt.Fprintf(&out, "member %d has also: %s\n", m.id, text)
		}
	}
	return out.String()
}

func (m *machine) jobs() map[uint64]string {
	jobs := map[uint64]string{}
	m.member.Broker().Look(func(e *engine.Engine, _ int64) {
		for c := range e.Snapshots {
			epoch := m.member.clock.zero
			jobs[c.ID] = fmt.Sprintf("%d in %s, pri %d, delay %d, created %d, body %q", c.ID, c.Tube, c.Pri, c.Delay, c.Created+epoch, c.Body)
		}
	})
	return jobs
}

func (m *machine) applied() (index uint64) {
	m.member.Broker().Look(func(*engine.Engine, int64) { index = m.member.turn.applied.Index })
	return index
}

func (m *machine) digest() (sum uint64) {
	member := m.member
	later := member.clock.time() + int64(1000*time.Hour) // all that is delayed counts as ready
	member.Broker().Look(func(e *engine.Engine, _ int64) { sum = e.Digest(later-member.clock.zero, member.clock.zero) })
	return sum
}

// check holds the queue of a member against the ledger.
func (m *machine) check() {
	w := m.w
	w.t.Helper()
	var err error
	m.member.Broker().Look(func(e *engine.Engine, _ int64) {
		err = errors.Join(e.Check(), m.member.turn.journal.Check())
		err = errors.Join(err, w.whatIsWrong(), w.asked.Check(func(yield func(string, uint64) bool) {
			for c := range e.Snapshots {
				if !yield(keyOf(c.Body), c.ID) {
					return
				}
			}
		}, w.asked.Now()))
	})
	if err != nil {
		w.fatalf("member %d: %v", m.id, err)
	}
}

// removed waits until the member of a machine has stopped because it was removed.
func (w *world) removed(m *machine) {
	w.t.Helper()
	w.until("the member that was removed stops", func() bool { return errors.Is(m.member.Err(), ErrRemoved) })
	if err := m.member.Close(); !errors.Is(err, ErrRemoved) {
		w.fatalf("member %d was removed, and says %v", m.id, err)
	}
	w.mu.Lock()
	m.member = nil
	w.mu.Unlock()
	if err := m.start(); !errors.Is(err, ErrRemoved) {
		w.fatalf("member %d was removed, and starts: %v", m.id, err)
	}
}

func (w *world) close() {
	for _, m := range w.machines {
		if m.member != nil {
			w.must(errors.Join(m.member.Broker().Check(), m.member.Close()))
			w.mu.Lock()
			m.member = nil
			w.mu.Unlock()
		}
	}
}
