package server

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/engine"
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
