package server

import (
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A Connection describes a client.
type Connection struct {
	engine.SessionStats
	Address  string        // IP and port, or "unix"
	Identity string        // empty if unknown
	Age      time.Duration // time since it connected
	Opened   int64         // time in ns
	Idle     time.Duration // time since its last command started, or since it connected
	Last     string        // last command; empty if there was none
	Holds    []engine.Hold // the first MaxNamedJobs
}

// MaxNamedJobs is the maximum number of jobs that a Connection names.
const MaxNamedJobs = 100

// Connection describes the connection of a session. ok is false if the session has none.
// It must be called within a turn.
func (s *Server) Connection(e *engine.Engine, now int64, sess *engine.Session) (c Connection, ok bool) {
	w, ok := sess.Waiter().(*socket)
	if !ok {
		return c, false
	}
	c = Connection{
		SessionStats: e.SessionStats(now, sess),
		Address:      w.address(),
		Identity:     w.Identity(),
		Age:          time.Duration(s.now() - w.Opened()),
		Opened:       w.Opened(),
		Holds:        e.Holds(now, sess, MaxNamedJobs),
	}
	c.Idle = c.Age
	if op, at, ok := w.LastCommand(); ok {
		c.Idle, c.Last = time.Duration(now-at), op.String()
	}
	return c, true
}

// Disconnect makes the loop close the connection of a session, without waiting for the
// client. The client loses unread replies, and its jobs become ready.
func (s *Server) Disconnect(sess *engine.Session) {
	if w, ok := sess.Waiter().(*socket); ok {
		w.Dismiss(errDismissed)
	}
}
