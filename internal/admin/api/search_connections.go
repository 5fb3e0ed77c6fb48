package api

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// A connectionFilter says which connections are wanted; the zero value: all.
type connectionFilter struct {
	tubes            *access.Pattern // used or watched; nil: any
	text             string          // in the address or the identity
	waiting, holding bool
}

func filterOf(in *admin.ListConnections) (f connectionFilter, err error) {
	f.text, f.waiting, f.holding = in.Q, in.Waiting, in.Holding
	if in.Tube != "" {
		p, err := access.NewPattern(strings.Split(in.Tube, ","))
		if err != nil {
			return f, problemf(http.StatusBadRequest, "tube: %v", err)
		}
		f.tubes = &p
	}
	return f, nil
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

// A connectionRank is the place of a connection in an order: by a number or a text, then by the id.
type connectionRank struct {
	key  int64
	text string
	id   uint64
}

// connectionColumns are what connections can be sorted by. What grows with time is taken as the time at which it began: else a
// connection would be on every page.
var connectionColumns = map[string]func(c *server.Connection, now int64) connectionRank{
	"id":       func(*server.Connection, int64) connectionRank { return connectionRank{} },
	"address":  func(c *server.Connection, _ int64) connectionRank { return connectionRank{text: c.Address} },
	"identity": func(c *server.Connection, _ int64) connectionRank { return connectionRank{text: c.Identity} },
	"age":      func(c *server.Connection, _ int64) connectionRank { return connectionRank{key: -c.Opened} },
	"using":    func(c *server.Connection, _ int64) connectionRank { return connectionRank{text: c.Using} },
	"watching": func(c *server.Connection, _ int64) connectionRank {
		return connectionRank{key: int64(c.SessionStats.Watching.Len())}
	},
	"holding": func(c *server.Connection, _ int64) connectionRank { return connectionRank{key: int64(c.Held)} },
	"waited": func(c *server.Connection, now int64) connectionRank {
		if !c.Waiting {
			return connectionRank{key: math.MinInt64}
		}
		return connectionRank{key: c.Waited - now}
	},
}

// A connectionOrder is how connections are sorted.
type connectionOrder struct {
	column     string
	descending bool
	after      *connectionRank // nil: from the first on
}

func (o *connectionOrder) rank(c *server.Connection, now int64) connectionRank {
	at := connectionColumns[o.column](c, now)
	at.id = c.ID
	return at
}

// compare compares places in the order.
func (o *connectionOrder) compare(a, b connectionRank) int {
	byKey := cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.text, b.text))
	byID := cmp.Compare(a.id, b.id)
	if o.descending {
		byKey = -byKey
	}
	if o.descending && o.column == "id" {
		byID = -byID
	}
	return cmp.Or(byKey, byID)
}

// orderOf reads the parameters sort and cursor.
func orderOf(in *admin.ListConnections) (o connectionOrder, err error) {
	o.column, o.descending = strings.CutPrefix(in.Sort, "-")
	if connectionColumns[o.column] == nil {
		return o, problemf(http.StatusBadRequest, "sort: want one of %v, with - before it for the largest first", slices.Sorted(maps.Keys(connectionColumns)))
	}
	text := in.Cursor
	if text == "" {
		return o, nil
	}
	at, err := inCursor.DecodeString(text)
	parts := strings.SplitN(string(at), " ", 3)
	if err != nil || len(parts) < 3 || inCursor.EncodeToString(at) != text {
		return o, badCursor()
	}
	key, err := strconv.ParseInt(parts[0], 10, 64)
	id, err2 := strconv.ParseUint(parts[1], 10, 64)
	if err != nil || err2 != nil {
		return o, badCursor()
	}
	o.after = &connectionRank{key, parts[2], id}
	return o, nil
}

// cursor returns the cursor of what is after a connection.
func (at *connectionRank) cursor() string {
	return inCursor.EncodeToString(fmt.Appendf(nil, "%d %d %s", at.key, at.id, at.text))
}

// A rankedConnection is a connection with its place in an order.
type rankedConnection struct {
	connectionRank
	server.Connection
}

// sortConnections answers listConnections with an order. It looks at all connections, but keeps those of the page only.
func (r *request) sortConnections(in *admin.ListConnections, filter *connectionFilter) (page admin.Connections, err error) {
	n := in.Limit
	o, err := orderOf(in)
	if err != nil {
		return page, err
	}
	var matching uint64
	// One more shows whether there is another page.
	best := firstOf[rankedConnection]{n: n + 1, compare: func(a, b rankedConnection) int { return o.compare(a.connectionRank, b.connectionRank) }}
	at := 0
	err = r.turns(func(e *engine.Engine, now int64) (more bool, err error) {
		at = r.connections(e, now, at, perTurn, func(c *server.Connection) {
			if !filter.matches(c) {
				return
			}
			matching++
			if place := o.rank(c, now); o.after == nil || o.compare(place, *o.after) > 0 {
				best.show(rankedConnection{place, *c})
			}
		})
		return at > 0, nil
	})
	if err != nil {
		return page, err
	}
	found := best.sorted()
	page = admin.Connections{Connections: make([]admin.Connection, min(n, len(found))), Matching: &matching}
	for i := range page.Connections {
		page.Connections[i] = connectionOf(&found[i].Connection)
	}
	if len(found) > n {
		page.Next = found[n-1].cursor()
	}
	return page, nil
}
