package server

import (
	"cmp"
	"encoding/binary"
	"slices"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// A client without a command in progress survives a change of leader. The state of its
// session is kept where its socket is: the leader sends the state as a mark in the
// stream, after the replies, or keeps it for its own clients. The next leader resumes the
// client: it opens a new session, which claims the jobs that the client holds.
//
// A new leader gathers: it executes no command until the other members have announced and
// sent their clients, or until gatherTime has passed. Then it resumes all of them. Claims
// precede all commands, so no claimed job is held by another client. If two clients claim
// a job, the later reservation wins.

// gatherTime is the maximum time that a new leader waits for the other members' clients.
const gatherTime = 300 * time.Millisecond

const gatherTick = 10 * time.Millisecond

// doubtTime limits the wait for the end of an old leader's stream if that leader might
// not have used all input of a client.
const doubtTime = 200 * time.Millisecond

// A marker is a Stream with marks.
type marker interface {
	Mark(position uint64, note, state []byte)
	LastMark() (note, state []byte, at time.Time, ok bool)
	Used() uint64
	Lose()
}

// A suspended is the state of a client at its last leader. state starts with the term.
type suspended struct {
	note, state []byte
	at          int64 // time in ns, as in Server.now, at which the state arrived
}

// An arrival counts the clients to resume from another member.
type arrival struct {
	term      uint64
	arrived   int
	announced int // -1 if the member has not announced the number
}

// arrive counts clients that arrive from a member, or records the number that the member
// announces.
func (s *Server) arrive(member, term uint64, arrived, announced int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.mu.arrivals[member]
	if a.term > term {
		return
	}
	if a.term < term {
		a = arrival{term: term, announced: -1}
	}
	a.arrived += arrived
	if announced >= 0 {
		a.announced = announced
	}
	s.mu.arrivals[member] = a
	select {
	case s.gathered <- struct{}{}:
	default:
	}
}

// hasGathered reports whether all of these members have sent their clients.
func (s *Server) hasGathered(term uint64, members []uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range members {
		if a := s.mu.arrivals[id]; a.term != term || a.announced < 0 || a.arrived < a.announced {
			return false
		}
	}
	return true
}

// gather waits for the other members' clients. Then it makes the first loop resume them.
func (s *Server) gather(lead Leadership) {
	defer s.wg.Done()
	began := s.now()
	over := time.After(gatherTime)
	tick := time.NewTicker(gatherTick)
	defer tick.Stop()
	for done := false; !done && s.leadership() == lead; {
		if heard := s.opt.Cluster.Heard; heard == nil || s.hasGathered(lead.Term, heard()) {
			break
		}
		select {
		case <-s.running.Done():
			return
		case <-over:
			done = true
		case <-tick.C:
		case <-s.gathered:
		}
	}
	s.mu.Lock()
	loops := s.mu.loops.all
	s.mu.gathering = s.mu.gathering && len(loops) > 0
	s.mu.Unlock()
	if len(loops) == 0 { // no client has connected
		s.broker.Decide((*engine.Engine).EndClaims)
		return
	}
	loops[0].inbox.endGathering(gathering{lead, began})
}

// A gathering is over when a new leader has its clients.
type gathering struct {
	lead  Leadership
	began int64 // time in ns
}

// endGathering resumes all pending clients that have a state, and routes the others.
func (l *loop) endGathering(g gathering) {
	s := l.srv
	took := time.Duration(s.now() - g.began)
	if l.inDoubt() > 0 && took < gatherTime {
		time.AfterFunc(gatherTick, func() { l.inbox.endGathering(g) })
		return
	}
	s.mu.Lock()
	current := s.mu.lead == g.lead && s.mu.gathering
	if current {
		s.mu.gathering = false
	}
	s.mu.Unlock()
	if !current {
		return
	}
	var found []*socket
	for _, c := range l.clients.all {
		if c != nil && !c.closing && c.proxy != nil && c.proxy.stream == nil && c.proxy.last != nil {
			found = append(found, c)
		}
	}
	n, refused := l.resume(found, true)
	s.log.Info("resumed the clients of the previous leader", "clients", n, "refused_claims", refused, "waited", took)
	for _, c := range l.clients.all {
		if c != nil && !c.closing && c.proxy != nil && c.proxy.stream == nil {
			c.proxy.route()
		}
	}
}

// A resuming is a client whose session is being opened again.
type resuming struct {
	*socket
	*conversation.Resumption
	input []byte
}

// resume resumes pending clients on this leader. all is true at the end of the gathering.
// It returns the number of resumed clients and the number of refused claims.
func (l *loop) resume(sockets []*socket, all bool) (resumed, refused int) {
	s := l.srv
	var clients []resuming
	type claim struct {
		c    *socket
		term uint64
		engine.Claim
	}
	var claims []claim
	for _, c := range sockets {
		r, term, err := c.proxy.resumption(l.srv.now())
		if err == nil {
			err = s.reenter(c, r.Identity)
		}
		if err != nil {
			s.reject(c.client, err)
			l.end(c, err)
			continue
		}
		s.shared.Memory.Set(&c.proxy.holding, c, 0)
		clients = append(clients, resuming{c, r, c.proxy.input})
		for _, k := range r.Claims {
			claims = append(claims, claim{c, term, k})
		}
	}
	if !s.startResuming(clients) {
		return 0, 0
	}
	slices.SortStableFunc(claims, func(a, b claim) int {
		return -cmp.Or(cmp.Compare(a.term, b.term), cmp.Compare(a.At, b.At))
	})
	var todo steps
	for _, c := range clients {
		todo = append(todo, func(e *engine.Engine, now int64) { c.ResumeSession(e, c.Resumption) })
	}
	for _, k := range claims {
		todo = append(todo, func(e *engine.Engine, now int64) {
			if o := k.c.Claim(e, now, k.Claim); o != engine.OK {
				refused++
				s.claimsRefused[claimReason(o)].Add(1)
			}
		})
	}
	if all {
		todo = append(todo, func(e *engine.Engine, now int64) { e.EndClaims() })
	}
	waits := slices.DeleteFunc(slices.Clone(clients), func(c resuming) bool { return !c.Waits })
	slices.SortStableFunc(waits, func(a, b resuming) int { return -cmp.Compare(a.Waited, b.Waited) })
	for _, c := range waits {
		todo = append(todo, func(e *engine.Engine, now int64) { c.ResumeWait(e, now, c.Resumption) })
	}
	for part := range slices.Chunk(todo, stepsPerTurn) {
		l.runAlone(s.broker.NewCaller(part))
	}
	for _, c := range clients {
		if c.Resumed(l.now, c.input) {
			resumed++
		}
		if c.loop == l {
			l.join(c.socket)
		} else {
			c.loop.inbox.join(c.socket)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.resuming = false
	s.notifyLoops()
	s.resumed.Add(int64(resumed))
	return resumed, refused
}

// startResuming takes clients out of the loop of pending clients. It returns false if
// this member is no longer the leader or if the server stops. After it has returned true,
// Follow waits for these clients.
func (s *Server) startResuming(clients []resuming) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mu.lead.here() || s.running.Err() != nil {
		return false
	}
	s.mu.resuming = true
	for _, c := range clients {
		c.proxy.loop.detach(c.socket)
		s.serveHere(c.socket)
		c.Open(s.now())
		c.joining = true
	}
	return true
}

// claimReasons are the reasons for refused claims.
var claimReasons = [...]string{"gone", "not ready", "expired"}

// claimReason returns the index of a reason in claimReasons.
func claimReason(o engine.Outcome) int {
	switch o {
	case engine.NotFound:
		return 0
	case engine.TimedOut:
		return 2
	}
	return 1
}

// stepsPerTurn is the number of sessions, claims and waits that a turn resumes.
const stepsPerTurn = 200

// steps are functions to execute in a turn.
type steps []func(e *engine.Engine, now int64)

// Apply implements broker.Request.
func (t steps) Apply(e *engine.Engine, now int64) (later int64) {
	for _, f := range t {
		f(e, now)
		now++
	}
	return now - 1
}

// resumption returns the state of a pending client, and the term of that state.
func (p *proxy) resumption(now int64) (r *conversation.Resumption, term uint64, err error) {
	last := p.last
	state := last.state
	if len(state) > 0 {
		n := 0
		if term, n = binary.Uvarint(state); n <= 0 {
			n = 0
		}
		state = state[n:]
	}
	r, err = conversation.ReadRecord(last.note, state, max(0, now-last.at))
	return r, term, err
}

// reenter admits a client with the identity that it had at its last leader.
func (s *Server) reenter(c *socket, identity string) error {
	v := &c.proxy.header
	if c.proxied != nil {
		v = c.proxied
	}
	return s.identify(c, v, cmp.Or(identity, v.Identity))
}

// record stores the state of a client's session, or sends it to the client's member, if
// it has changed and no command is in progress.
func (l *loop) record(s *socket) {
	note, state, unused, ok := s.Record()
	if !ok {
		return
	}
	l.state = append(binary.AppendUvarint(l.state[:0], s.term), state...)
	if s.proxied == nil {
		if s.suspended == nil {
			s.suspended = new(suspended)
		}
		s.suspended.state = append(s.suspended.state[:0], l.state...)
		s.suspended.at = l.now
		if note != nil {
			s.suspended.note = append(s.suspended.note[:0], note...)
		}
		return
	}
	if m, ok := s.fd.(streamSocket).Stream.(marker); ok {
		m.Mark(s.taken-uint64(unused), note, l.state)
	}
}

// suspend makes a client pending when this member is no longer the leader. If a command
// is in progress, it ends the connection.
func (l *loop) suspend(s *socket) {
	l.record(s)
	if s.proxied != nil {
		if s.Rests() {
			l.lose(s, errLeadership)
		} else {
			l.end(s, errLeadership)
		}
		return
	}
	unused, ok := s.Suspend(errLeadership)
	if !ok {
		l.end(s, errLeadership)
		return
	}
	p := s.origin
	n := &socket{srv: s.srv, fd: s.fd, client: s.client, buffer: s.buffer, proxy: p, origin: p}
	n.Conversation = conversation.New(&l.srv.shared, n, l.srv.nameOf(n.client))
	if s.suspended != nil { // otherwise it has executed nothing since it was resumed
		p.last = s.suspended
	} else if p.last == nil {
		p.last = new(suspended)
	}
	p.socket, p.loop, p.came, p.retryAt, p.input = n, nil, l.srv.now(), 0, unused
	s.closing = true
	l.detach(s)
	l.srv.hangups.unwatch(s)
	srv := l.srv
	srv.mu.Lock()
	defer srv.mu.Unlock()
	n.loop = srv.mu.loops.all[0]
	n.loop.inbox.enter(n)
	srv.mu.sockets--
	srv.mu.left.Broadcast()
}

// lose ends the stream of a proxied client without a command in progress, so that its
// member finds another leader for it.
func (l *loop) lose(s *socket, reason error) {
	if m, ok := s.fd.(streamSocket).Stream.(marker); ok {
		m.Lose()
	}
	l.end(s, reason)
}

// detach removes a socket from the loop without closing it.
func (l *loop) detach(s *socket) {
	if v, ok := s.fd.(streamSocket); ok {
		v.Notify(func() {})
	} else {
		l.poll.Remove(s.fd) // reads report the error of a failed connection
	}
	l.timers.remove(s)
	l.free(s)
	s.listed = false
}

// lose makes a client pending after its leader is lost. If a command might be in
// progress, it waits up to doubtTime for the end of the stream, and then disconnects the
// client.
func (p *proxy) lose(reason error) {
	l, s := p.loop, p.socket
	m, ok := p.stream.(marker)
	if !ok || p.shut {
		l.end(s, reason)
		return
	}
	var err error
	for n := 0; err == nil; {
		p.replies = append(p.replies, l.scratch()[:n]...)
		n, err = p.stream.TryRead(l.scratch())
	}
	given := reason == errLost || err == errLost // the leader has not executed the input after the last mark
	note, state, at, rests := m.LastMark()
	used := m.Used()
	delivered := true
	if len(p.replies) > 0 {
		n, err := s.fd.Write(p.replies)
		delivered = err == nil && n == len(p.replies)
	}
	rests = rests && delivered && used >= p.sentFrom && used <= p.sentFrom+uint64(len(p.sent))
	if !rests || !given && used < p.sentFrom+uint64(len(p.sent)) {
		if err == epoll.ErrWouldBlock && delivered && !p.doubt {
			p.doubt, p.came, p.replies = true, l.now, nil
			l.timers.set(s, p.came+int64(doubtTime))
			return
		}
		l.end(s, reason)
		l.inbox.announceClients() // there is one client less
		return
	}
	unused := p.sent[used-p.sentFrom:]
	switch {
	case !at.IsZero():
		p.last = &suspended{note, state, int64(at.Sub(l.srv.begun))}
	case p.last == nil:
		p.last = new(suspended)
	}
	p.input = slices.Concat(unused, p.input[p.head:])
	p.stream.Close()
	p.stream, p.replies, p.sent, p.sentFrom, p.head, p.doubt = nil, nil, nil, 0, 0, false
	p.came, p.retryAt = l.now, l.now+int64(leaderRetry)
	l.srv.shared.Memory.Set(&p.holding, s, 0)
	p.route()
}

// errLost is mux.ErrLost.
const errLost = syscall.ECONNABORTED

// keepSent keeps a copy of the input that is sent to the leader, until a mark confirms
// it.
func (p *proxy) keepSent(b []byte) {
	if _, ok := p.stream.(marker); !ok {
		return
	}
	p.trimSent()
	p.sent = append(p.sent, b...)
}

// trimSent discards the input that the leader has used.
func (p *proxy) trimSent() {
	m, ok := p.stream.(marker)
	if !ok || len(p.sent) == 0 {
		return
	}
	n := min(len(p.sent), int(max(m.Used(), p.sentFrom)-p.sentFrom))
	p.sentFrom += uint64(n)
	if p.sent = append(p.sent[:0], p.sent[n:]...); len(p.sent) == 0 {
		p.sent = nil
	}
}

// inDoubt returns the number of clients that wait for the end of an old leader's stream.
func (l *loop) inDoubt() (n int) {
	for _, c := range l.clients.all {
		if c != nil && !c.closing && c.proxy != nil && c.proxy.doubt {
			n++
		}
	}
	return n
}

// announce sends the leader the number of clients that this member has sent to it, or is
// going to send.
func (l *loop) announce() {
	lead, n := l.srv.leadership(), l.inDoubt()
	if lead.Leader == 0 || lead.Leader == l.srv.opt.Cluster.ID {
		return
	}
	if l.sentTerm == lead.Term {
		n += l.sentClients
	}
	header, err := streamHeader{proxiedClient: proxiedClient{Member: l.srv.opt.Cluster.ID, Term: lead.Term}, Announces: &n}.append(nil)
	if err != nil {
		return
	}
	conn, err := l.srv.opt.Cluster.Dial(lead.Leader)
	if err != nil {
		l.srv.log.Debug("cannot announce the clients to the leader", "err", err)
		return
	}
	stream := l.srv.streamOf(conn)
	stream.TryWrite(header)
	stream.CloseWrite()
	stream.Close()
}
