package api

import (
	"math"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api/list"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// A connectionFilter selects connections. The zero value selects all.
type connectionFilter struct {
	tubes            access.Pattern // tubes that a connection uses or watches; nil for all
	text             string         // text in the address or the identity
	waiting, holding bool
}

func filterOf(in *admin.ListConnections) connectionFilter {
	f := connectionFilter{text: in.Q, waiting: in.Waiting, holding: in.Holding}
	if in.Tube != "" {
		f.tubes = strings.Split(in.Tube, ",")
	}
	return f
}

func (f *connectionFilter) matches(c *server.Connection) bool {
	return (!f.waiting || c.Waiting) && (!f.holding || c.Held > 0) &&
		(strings.Contains(c.Address, f.text) || strings.Contains(c.Identity, f.text)) &&
		(f.tubes == nil || f.tubes.Matches(c.Using) || f.watched(c))
}

func (f *connectionFilter) watched(c *server.Connection) bool {
	watching := c.SessionStats.Watching
	for i := range watching.Len() {
		if f.tubes.Matches(watching.At(i)) {
			return true
		}
	}
	return false
}

// A seenConnection is a connection at the time of the survey.
type seenConnection struct {
	server.Connection
	at int64
}

// connectionColumns are the sort columns of connections. Elapsed times are sorted by
// their start. Otherwise, a connection could be on every page.
var connectionColumns = list.Columns[seenConnection]{
	By: map[string]func(*seenConnection) list.Key{
		"id":       func(*seenConnection) list.Key { return list.Key{} },
		"address":  func(c *seenConnection) list.Key { return list.Key{S: c.Address} },
		"identity": func(c *seenConnection) list.Key { return list.Key{S: c.Identity} },
		"age":      func(c *seenConnection) list.Key { return list.Key{N: -c.Opened} },
		"using":    func(c *seenConnection) list.Key { return list.Key{S: c.Using} },
		"watching": func(c *seenConnection) list.Key { return list.Key{N: int64(c.SessionStats.Watching.Len())} },
		"holding":  func(c *seenConnection) list.Key { return list.Key{N: int64(c.Held)} },
		"waited":   func(c *seenConnection) list.Key { return sinceThen(c.Waiting, c.Waited, c.at) },
		"held":     func(c *seenConnection) list.Key { return sinceThen(c.Held > 0, c.HeldFor, c.at) },
	},
	Tie: func(c *seenConnection) list.Key { return list.Key{N: int64(c.ID)} }, TieName: "id",
}

// sinceThen returns the sort key of an elapsed time. Connections without that time come
// last.
func sinceThen(has bool, passed, at int64) list.Key {
	if !has {
		return list.Key{N: math.MinInt64}
	}
	return list.Key{N: passed - at}
}

// sortConnections returns a sorted page. It surveys all connections, but stores only the
// connections of the page.
func (r *request) sortConnections(in *admin.ListConnections, filter *connectionFilter) (page admin.Connections, err error) {
	q, err := connectionColumns.Query(in.Sort, in.Cursor, in.Limit)
	if err != nil {
		return page, badRequest("%v", err)
	}
	err = r.allConnections(func(c *server.Connection, now int64) {
		if filter.matches(c) {
			q.Show(&seenConnection{*c, now})
		}
	})
	if err != nil {
		return page, err
	}
	found, next := q.Page()
	page = admin.Connections{Connections: make([]admin.Connection, len(found)), Next: next, Matching: &q.Matching}
	for i := range found {
		page.Connections[i] = connectionOf(&found[i].Connection)
	}
	return page, nil
}
