package server

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// The server of a member of a cluster serves clients only while the member is the active leader. At other
// members a client's bytes go to the leader and back (relay.go), and the leader serves it as a visitor
// (visitor.go). Without a leader a new client waits (lobby.go). When the leadership changes, all
// clients' connections end, at all members: each connects again, as after a restart.

// DefaultPatience is how long a command waits for a leader.
const DefaultPatience = 10 * time.Second

// A Member is what the server of a member of a cluster needs to know of that.
type Member struct {
	// ID is that of this member.
	ID uint64

	// Dial opens a stream to the leader, whose Server.ServeVisitor gets the other end. It returns when the
	// context is done, at the latest.
	Dial func(ctx context.Context, leader uint64) (net.Conn, error)

	// Patience is how long a command waits for a leader before it is answered
	// INTERNAL_ERROR, and how long no leader may be known before it does not wait. 0: DefaultPatience.
	Patience time.Duration

	// Stats returns what stats tells of the cluster, to a client of the member that is given. It is called
	// within turns.
	Stats func(asked uint64) []wire.Stat
}

// A Leadership says who leads, as one member knows it.
type Leadership struct {
	Here   bool   // this member is the active leader: clients are served here
	Leader uint64 // who leads; 0: nobody
	Term   uint64
}

// A place is where a connection is served.
type place uint8

const (
	inLobby place = iota // nowhere yet
	here                 // by this server's engine
	away                 // by the leader
)

var (
	errLeadership = errors.New("the leader of the cluster has changed")
	errElsewhere  = errors.New("this member does not lead") // never leaves the package
)

// Follow says who leads now. If that has changed, it ends the connections of all clients but those that
// wait for a leader, and returns when no request of theirs will be applied any more.
func (s *Server) Follow(lead Leadership) {
	s.accepting.Lock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.lead != lead {
		switch {
		case lead.Leader != 0:
			s.mu.alone = time.Time{}
		case s.mu.alone.IsZero():
			s.mu.alone = time.Now()
		}
		s.mu.lead = lead
		s.mu.leads++
		s.mu.endLead()
		s.mu.leading, s.mu.endLead = context.WithCancel(context.Background())
		for c := range s.mu.netConns {
			if c.place != inLobby {
				c.Dismiss(errLeadership)
			}
		}
		s.mu.loops.dismiss(errLeadership, s.mu.leads)
		s.mu.relays.dismiss(s.mu.leads)
	}
	s.accepting.Unlock()
	for !lead.Here && s.mu.here+s.mu.sockets > 0 {
		s.mu.left.Wait()
	}
}

// leadership returns who leads, and a context that is done when that changes.
func (s *Server) leadership() (Leadership, context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.lead, s.mu.leading
}

// patienceFor returns for how long a command waits for a leader that came at a time. Where none has been known for
// Member.Patience it does not wait: the member is cut off from the others, or they do not take it in.
func (s *Server) patienceFor(came time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := came
	if !s.mu.alone.IsZero() && s.mu.alone.Before(came) {
		from = s.mu.alone
	}
	return max(0, s.opt.Member.Patience-came.Sub(from))
}

// occupy notes where a connection is served, unless the leadership has changed.
func (s *Server) occupy(c *netConn, p place, lead Leadership) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.lead != lead {
		return false
	}
	c.place = p
	if p == here {
		s.mu.here++
	}
	return true
}

// unoccupy notes that a connection is served no more, with mu locked.
func (s *Server) unoccupy(c *netConn) {
	if c.place == here {
		s.mu.here--
	}
	c.place = inLobby
	s.mu.left.Broadcast()
}

// serveAtMember serves a connection wherever the leader is, as soon as there is one.
func (s *Server) serveAtMember(c *netConn, t *ListenOptions, e access.Evidence) {
	defer func() {
		if !c.moved {
			c.nc.Close()
		}
	}()
	l := s.newLobby(c, t, e)
	defer c.Beside(0)
	for c.dismissed.Load() == nil {
		lead, leading := s.leadership()
		var retry time.Duration
		switch {
		case lead.Here:
			moved, err := s.moveToLoop(c, l, t, lead)
			if c.moved = moved; moved {
				return
			}
			if err == nil && !s.occupy(c, here, lead) {
				continue
			}
			if err == nil {
				err = s.letBegin(c, t, e)
			}
			if err != nil {
				s.reject(c.nc.RemoteAddr(), err)
				return
			}
			c.ahead = l.input
			c.Beside(0)
			c.serve()
			return
		case lead.Leader == s.opt.Member.ID, lead.Leader == 0:
		case c.visitor != nil: // its member knows already that this one leads, or does not know yet that it leads no more
		default:
			err := s.relay(leading, c, l, lead)
			if err == nil {
				if reason := c.dismissed.Load(); reason != nil {
					s.disconnected(c.Client(), *reason)
				}
				return
			}
			s.log.Debug("the leader cannot be reached", "client", c.Client(), "err", err)
			retry = leaderRetry
		}
		if err := l.wait(leading.Done(), retry); err != nil {
			s.disconnected(c.Client(), err)
			return
		}
	}
}

const (
	// leaderRetry is how long a connection waits before it tries again to reach a leader.
	leaderRetry = 250 * time.Millisecond

	// leaderWait is how long it tries to. Meanwhile nobody looks at its commands, which may have waited for too long.
	leaderWait = time.Second
)

// letBegin lets the conversation of a connection begin: as that of a visitor, or of whom the
// evidence belongs to.
func (s *Server) letBegin(c *netConn, t *ListenOptions, e access.Evidence) error {
	if c.visitor == nil {
		s.admit(&c.Conversation, t, e)
		return nil
	}
	return s.letVisitorBegin(&c.Conversation, t, c.visitor, e.Address)
}

func (s *Server) letVisitorBegin(c *conversation.Conversation, t *ListenOptions, v *visitor, addr netip.Addr) error {
	id, known := s.access.ByName(v.Identity)
	if !known && v.Identity != "" {
		return &refusal{"the leader knows no identity " + v.Identity}
	}
	s.admitAs(c, t, id, known, addr)
	return nil
}

// askedMember returns the member that a client has asked.
func (s *Server) askedMember(asker conversation.Owner) uint64 {
	if c, ok := asker.(connected); ok && c.visits() != nil {
		return c.visits().Member
	}
	return s.opt.Member.ID
}
