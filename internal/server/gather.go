package server

import (
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// gatherTime is the maximum time that a new leader waits for the other members' clients.
const gatherTime = 300 * time.Millisecond

const gatherTick = 10 * time.Millisecond

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
	stream, err := l.srv.opt.Cluster.Dial(lead.Leader)
	if err != nil {
		l.srv.log.Debug("cannot announce the clients to the leader", "err", err)
		return
	}
	stream.TryWrite(header)
	stream.CloseWrite()
	stream.Close()
}
