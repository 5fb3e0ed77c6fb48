package console

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// A connectionsView is the page of the connections.
type connectionsView struct {
	listing
	Asked    string // sort order in the URL
	Tube, Q  string
	Only     string  // waiting, holding, or empty
	Matching *uint64 // nil if the connections are unsorted and not counted
}

// sortedAlone is the maximum number of connections that are sorted by default. To sort
// them, the server examines all connections, once a second while the page is open.
const sortedAlone = 1000

func connectionsPage(r *request) (*page, error) {
	v := &connectionsView{Asked: r.FormValue("sort"), Tube: r.FormValue("tube"), Q: r.FormValue("q"), Only: r.FormValue("only")}
	if v.Only != "waiting" && v.Only != "holding" {
		v.Only = ""
	}
	v.listing = listing{Sort: v.Asked, Cursor: r.FormValue("cursor"), at: func(sort, cursor string) string {
		return withQuery(r.site.Base+"connections", "sort", sort, "tube", v.Tube, "q", v.Q, "only", v.Only, "cursor", cursor)
	}}
	stats, err := r.api().GetStats(r.Context())
	if err != nil {
		return nil, err
	}
	if v.Asked == "" && v.Cursor == "" && stats.Connections.Current <= sortedAlone {
		v.Sort = "id"
	}
	in := &admin.ListConnections{Sort: v.Sort, Tube: v.Tube, Q: v.Q, Waiting: v.Only == "waiting", Holding: v.Only == "holding", Cursor: v.Cursor}
	found, err := r.api().ListConnections(r.Context(), in)
	if err != nil {
		return nil, err
	}
	v.lists(r.clientList(found.Connections), found.Next)
	v.Matching = found.Matching
	p := newPage("connections", "Connections", "connections", v)
	p.Server = &stats
	return p, nil
}

// clientColumns contains the columns of each list of connections.
var clientColumns = []column{
	{Title: "Connection", Class: "l", sort: "id"},
	{Title: "From", Class: "l mid", sort: "address"},
	{Title: "Identity", Class: "l who", sort: "identity"},
	{Title: "Age", Class: "mid", sort: "-age"},
	{Title: "Uses", Class: "l", sort: "using"},
	{Title: "Watches", Class: "l mid", Hint: "Sorted by the number of watched tubes", sort: "-watching"},
	{Title: "Holds", Hint: "The job held for longest", Class: "l", sort: "-holding"},
	{Title: "Held for", Hint: "Time since the oldest reservation", sort: "-held"},
	{Title: "Waiting for", Hint: "Time in a reserve", sort: "-waited"},
}

// shownWatches is the maximum number of watched tubes in a row.
const shownWatches = 5

// steadyHold is the time in seconds after which a held job gets a link. Before that, the
// job can change too often for a row, so its text updates live.
const steadyHold = 60

// clientList returns a list of connections.
func (r *request) clientList(clients []admin.Connection) list {
	l := list{Columns: clientColumns}
	for i := range clients {
		c := &clients[i]
		row := listRow{Name: fmt.Sprint(c.ID), Link: fmt.Sprintf("%sconnection/%d", r.site.Base, c.ID)}
		row.ID = rowID("c" + row.Name)
		row.tag(c.Producer, "producer", "tag")
		row.tag(c.Worker, "worker", "tag")
		watches := strings.Join(c.Watching[:min(len(c.Watching), shownWatches)], ", ")
		if c.WatchingCount > shownWatches {
			watches += fmt.Sprintf(" and %d more", c.WatchingCount-shownWatches)
		}
		waits := greyed("–")
		if c.Waiting {
			waits = greyed(duration(c.Waited))
		}
		waits.ID = "w"
		holds, held := greyed("–"), greyed("–")
		if c.HoldingCount > 0 {
			held, holds = greyed(duration(c.HeldFor)), cell{Text: fmt.Sprint("job ", c.Holding[0])}
			if c.HoldingCount > 1 {
				holds.Text += fmt.Sprintf(" and %d more", c.HoldingCount-1)
			}
			if c.HeldFor >= steadyHold {
				holds.Link, row.ID = fmt.Sprintf("%sjob/%d", r.site.Base, c.Holding[0]), rowID(fmt.Sprint("c", c.ID, c.Holding[0], c.HoldingCount))
			}
		}
		if held.ID = "f"; holds.Link == "" {
			holds.ID = "h"
		}
		l.add(row, cell{Text: c.Address, Class: "mono from", Title: c.Address}, cell{Text: cmp.Or(c.Identity, "–"), Class: zeroClass(cmp.Or(c.Identity, "–")), Title: c.Identity}, ago("a", c.Age),
			cell{Text: c.Using, Link: r.tubeLink(c.Using, "")}, cell{Text: watches, Class: "body watches"}, holds, held, waits)
	}
	return l
}

// A connectionView is the page of a connection.
type connectionView struct {
	admin.Connection
	Gone bool
}

func connectionPage(r *request) (*page, error) {
	id := r.PathValue("connection")
	v := &connectionView{}
	in, err := bindPath[admin.OfConnection](r.PathValue)
	if err == nil {
		v.Connection, err = r.api().GetConnection(r.Context(), in)
	}
	if err != nil && !isStatus(err, http.StatusNotFound) {
		return nil, err
	}
	p := newPage("connection", "Connection "+id, "connections", v)
	if err != nil {
		v.Gone, p.status = true, http.StatusNotFound
	}
	still := v.Connection // without the elapsed times
	still.Age, still.Waited, still.Idle, still.HeldFor = 0, 0, 0, 0
	p.shape = append(p.shape, fmt.Sprintf("%+v", still))
	return p, nil
}
