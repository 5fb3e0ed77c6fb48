package server

import (
	"errors"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// The server of a cluster member serves clients only while the member is the active
// leader. On other members, a loop forwards a client's bytes to the leader and back
// (proxy.go), and the leader serves it as a proxied client (proxied.go). Without a
// leader, a client is pending, and its input is not read. After a change of leadership,
// clients without a command in progress are resumed by the new leader (resume.go). All
// other connections are closed, on all members.

// leaderTimeout is the time that a client waits for a leader before the server closes its
// connection. If there has been no leader for longer than that, new clients do not wait.
const leaderTimeout = 10 * time.Second

// A Cluster is the server's view of the cluster whose member it runs on.
type Cluster struct {
	// ID is the id of the member.
	ID uint64

	// Dial opens a stream to the leader's Server.ServeProxied. It must not block.
	Dial func(leader uint64) (MemberStream, error)

	// Heard returns the other members from which this member has heard since it became
	// the leader. A new leader waits for their clients. Heard can be nil.
	Heard func() []uint64

	// Stats returns the cluster's entries in the stats reply, for a client of the given
	// member. It is called within turns.
	Stats func(asked uint64) []wire.Stat
}

// A Leadership is a member's view of the current leader.
type Leadership struct {
	Leader uint64 // id of the leader; 0 means none
	Term   uint64
	Epoch  uint64 // 0 unless this member is the active leader
}

// here reports whether this member is the active leader, which serves clients.
func (l Leadership) here() bool { return l.Epoch != 0 }

var (
	errLeadership = errors.New("the leader of the cluster has changed")
	errNoLeader   = errors.New("the cluster has had no leader for too long")
)

// Follow sets the current leader. If it has changed, Follow suspends or disconnects all
// clients except pending ones, and returns when none of their earlier requests can be
// applied.
func (s *Server) Follow(lead Leadership) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.mu.lead != lead
	if changed {
		switch {
		case lead.Leader != 0:
			s.mu.alone = engine.Never
		case s.mu.alone == engine.Never:
			s.mu.alone = s.now()
		}
		s.mu.lead = lead
		s.mu.leads++
		if s.mu.gathering = s.opt.Cluster != nil && lead.here() && s.running.Err() == nil; s.mu.gathering {
			s.wg.Add(1)
			go s.gather(lead)
		}
		s.notifyLoops()
	}
	for !lead.here() && s.mu.sockets > 0 {
		s.mu.left.Wait()
	}
	if changed && s.opt.Cluster != nil && len(s.mu.loops.all) > 0 {
		s.mu.loops.all[0].inbox.announceClients()
	}
}

// isGathering reports whether this leader waits for the clients of the other members.
func (s *Server) isGathering() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.gathering
}

// leadership returns the current leadership.
func (s *Server) leadership() Leadership {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.lead
}

// leaderDeadline returns the time at which the connection of a pending client is closed.
// came is the time at which the client connected. If no leader has been known for
// leaderTimeout, the connection is closed at once, because the member is isolated.
func (s *Server) leaderDeadline(came int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(came, s.mu.alone) + int64(leaderTimeout)
}

// converse starts the local conversation of a pending client and passes it to the loop
// that serves it, unless the leadership has changed. If the server is stopping, that loop
// might have ended, so this loop ends the client.
func (s *Server) converse(c *socket) error {
	if c.proxied != nil {
		if err := s.identify(c, c.proxied, c.proxied.Identity); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := c.proxy; s.mu.lead.here() && s.running.Err() == nil {
		s.serveHere(c)
		p.loop.detach(c)
		s.enter(c)
	}
	return nil
}

// follows reports whether lead is still current. If so, it records that the client
// belongs to it.
func (s *Server) follows(lead Leadership, c *socket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.leads = s.mu.leads
	return s.mu.lead == lead
}
