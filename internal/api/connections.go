package api

import (
	"net/http"
	"strconv"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// shownNames is the maximum number of watched tubes in a description.
const shownNames = 100

func connectionOf(c *server.Connection) admin.Connection {
	shown := admin.Connection{
		ID:            c.ID,
		Address:       c.Address,
		Identity:      c.Identity,
		Age:           seconds(int64(c.Age)),
		Idle:          seconds(int64(c.Idle)),
		LastCommand:   c.Last,
		Using:         c.Using,
		Watching:      make([]string, min(c.SessionStats.Watching.Len(), shownNames)),
		WatchingCount: c.SessionStats.Watching.Len(),
		Holding:       make([]uint64, len(c.Holds)),
		HoldingCount:  c.Held,
		HeldFor:       seconds(c.HeldFor),
		Waiting:       c.Waiting,
		Waited:        seconds(c.Waited),
		Producer:      c.Producer,
		Worker:        c.Worker,
	}
	for i := range shown.Holding {
		shown.Holding[i] = c.Holds[i].ID
	}
	for i := range shown.Watching {
		shown.Watching[i] = c.SessionStats.Watching.At(i)
	}
	return shown
}

// listConnections returns a page of connections. If the page is not sorted, the cursor is
// the position of the next connection.
func (r *request) listConnections(in *admin.ListConnections) (page admin.Connections, err error) {
	filter := filterOf(in)
	if in.Sort != "" {
		return r.sortConnections(in, &filter)
	}
	at, n := 0, in.Limit
	if in.Cursor != "" {
		if at, err = strconv.Atoi(in.Cursor); err != nil || at < 1 {
			return page, badCursor()
		}
	}
	var found []server.Connection
	err = r.turns(func(e *engine.Engine, now int64) (more bool, err error) {
		at = r.connections(e, now, at, min(perTurn, n-len(found)), func(c *server.Connection) {
			if filter.matches(c) {
				found = append(found, *c)
			}
		})
		return at > 0 && len(found) < n, nil
	})
	page.Connections = make([]admin.Connection, len(found))
	for i := range found {
		page.Connections[i] = connectionOf(&found[i])
	}
	if at > 0 {
		page.Next = strconv.Itoa(at)
	}
	return page, err
}

// connections calls tell for the connections at the next n positions. It must be called
// in a turn. It returns the next position, or 0 at the end.
func (r *request) connections(e *engine.Engine, now int64, from, n int, tell func(c *server.Connection)) (next int) {
	sessions, next := e.Sessions(from, n)
	for _, s := range sessions {
		if c, ok := r.api.opt.Server.Connection(e, now, s); ok {
			tell(&c)
		}
	}
	return next
}

// allConnections calls tell for all connections, in as many turns as needed.
func (r *request) allConnections(tell func(c *server.Connection, now int64)) error {
	at := 0
	return r.turns(func(e *engine.Engine, now int64) (more bool, err error) {
		at = r.connections(e, now, at, perTurn, func(c *server.Connection) { tell(c, now) })
		return at > 0, nil
	})
}

// lookedAt is the number of sessions that a turn can check to find a connection.
const lookedAt = 4096

// findConnection returns the connection in the path.
func (r *request) findConnection() (c server.Connection, s *engine.Session, err error) {
	at, found := 0, false
	err = r.turns(func(e *engine.Engine, now int64) (more bool, err error) {
		var sessions []*engine.Session
		sessions, at = e.Sessions(at, lookedAt)
		for _, s = range sessions {
			if s.ID() == r.connection {
				c, found = r.api.opt.Server.Connection(e, now, s)
				return false, nil
			}
		}
		return at > 0, nil
	})
	if err == nil && !found {
		err = problemf(http.StatusNotFound, "no connection %d", r.connection)
	}
	return c, s, err
}

func (r *request) getConnection(*admin.OfConnection) (one admin.Connection, err error) {
	c, _, err := r.findConnection()
	if err != nil {
		return one, err
	}
	return connectionOf(&c), nil
}

func (r *request) closeConnection(*admin.OfConnection) (none admin.None, err error) {
	c, s, err := r.findConnection()
	if err != nil {
		return none, err
	}
	r.note("closed", c.Address)
	r.note("holding", c.Held)
	r.api.opt.Server.Disconnect(s)
	return none, nil
}
