package api

import (
	"net/http"
	"strconv"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// A Connection is what there is to tell of a client. Its times are in seconds.
type Connection struct {
	ID            uint64   `json:"id"`
	Address       string   `json:"address"`
	Identity      string   `json:"identity,omitempty"`
	Age           int64    `json:"age"`
	Idle          int64    `json:"idle"`
	LastCommand   string   `json:"last_command,omitempty"`
	Using         string   `json:"using"`
	Watching      []string `json:"watching"` // the first
	WatchingCount int      `json:"watching_count"`
	Holding       []uint64 `json:"holding"` // ids of the first jobs
	HoldingCount  int      `json:"holding_count"`
	HeldFor       int64    `json:"held_for"`
	Waiting       bool     `json:"waiting"`
	Waited        int64    `json:"waited"`
	Producer      bool     `json:"producer"`
	Worker        bool     `json:"worker"`
}

// Connections is a page of connections. Those that match are counted if the page has an order.
type Connections struct {
	Connections []Connection `json:"connections"`
	Next        string       `json:"next,omitempty"`
	Matching    *uint64      `json:"matching,omitempty"`
}

// shownNames is how many of the tubes that a client watches are named.
const shownNames = 100

func connectionOf(c *server.Connection) Connection {
	shown := Connection{
		ID:            c.ID,
		Address:       c.Address,
		Identity:      c.Identity,
		Age:           seconds(int64(c.Age)),
		Idle:          seconds(int64(c.Idle)),
		LastCommand:   c.Last,
		Using:         c.Using,
		Watching:      make([]string, min(c.SessionStats.Watching.Len(), shownNames)),
		WatchingCount: c.SessionStats.Watching.Len(),
		Holding:       append([]uint64{}, c.Jobs...),
		HoldingCount:  c.Held,
		HeldFor:       seconds(c.HeldFor),
		Waiting:       c.Waiting,
		Waited:        seconds(c.Waited),
		Producer:      c.Producer,
		Worker:        c.Worker,
	}
	for i := range shown.Watching {
		shown.Watching[i] = c.SessionStats.Watching.At(i)
	}
	return shown
}

// listConnections tells of connections, in no particular order unless one is asked for. The cursor is then the place
// where the next begin.
func listConnections(r *request) (reply, error) {
	n, err := r.limit(maxConnections)
	if err != nil {
		return reply{}, err
	}
	filter, err := r.connectionFilter()
	if err != nil {
		return reply{}, err
	}
	if r.query.Get("sort") != "" {
		return r.sortConnections(n, &filter)
	}
	at := 0
	if text := r.query.Get("cursor"); text != "" {
		if at, err = strconv.Atoi(text); err != nil || at < 1 {
			return reply{}, badCursor()
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
	page := Connections{Connections: make([]Connection, len(found))}
	for i := range found {
		page.Connections[i] = connectionOf(&found[i])
	}
	if at > 0 {
		page.Next = strconv.Itoa(at)
	}
	return reply{body: page}, err
}

// connections tells in a turn of those at the next n places, and returns where it goes on; 0: there are no more.
func (r *request) connections(e *engine.Engine, now int64, from, n int, tell func(c *server.Connection)) (next int) {
	sessions, next := e.Sessions(from, n)
	for _, s := range sessions {
		if c, ok := r.api.opt.Server.Connection(e, now, s); ok {
			tell(&c)
		}
	}
	return next
}

// lookedAt is how many sessions a turn looks at for one of them.
const lookedAt = 4096

// findConnection looks for the connection that the path names.
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
		err = problemf(http.StatusNotFound, "there is no connection %d", r.connection)
	}
	return c, s, err
}

func getConnection(r *request) (reply, error) {
	c, _, err := r.findConnection()
	return reply{body: connectionOf(&c)}, err
}

func closeConnection(r *request) (reply, error) {
	c, s, err := r.findConnection()
	if err != nil {
		return reply{}, err
	}
	r.note("closed", c.Address)
	r.note("holding", c.Held)
	r.api.opt.Server.Disconnect(s)
	return reply{status: http.StatusAccepted}, nil
}
