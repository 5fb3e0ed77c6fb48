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
	Asked    string // what the URL has as sort
	Tube, Q  string
	Only     string  // waiting, holding, or nothing
	Matching *uint64 // nil: they are in no particular order, and nobody knows how many match
}

// sortedAlone is up to how many connections are shown in the order in which they came, if nobody asks for an order: for any order the server looks at all
// of them, once a second as long as somebody looks at the page.
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
	p.Curl = r.curl("GET /connections", in)
	return p, nil
}

// clientColumns are those of each list of connections.
var clientColumns = []column{
	{Title: "Connection", Class: "l", sort: "id"},
	{Title: "From", Class: "l", sort: "address"},
	{Title: "Who", Class: "l", sort: "identity"},
	{Title: "Age", sort: "-age"},
	{Title: "Uses", Class: "l", sort: "using"},
	{Title: "Watches", Class: "l", Hint: "in the order of how many", sort: "-watching"},
	{Title: "Holds", sort: "-holding"},
	{Title: "Waits for", sort: "-waited"},
}

// shownWatches is how many tubes of a connection are named.
const shownWatches = 5

// clientList is a list of connections.
func (r *request) clientList(clients []admin.Connection) list {
	l := list{Columns: clientColumns}
	for i := range clients {
		c := &clients[i]
		row := listRow{Name: fmt.Sprint(c.ID), Link: fmt.Sprintf("%sconnection/%d", r.site.Base, c.ID)}
		row.ID = rowID("c" + row.Name)
		row.tag(c.Producer, "puts", "tag")
		row.tag(c.Worker, "works", "tag")
		watches := strings.Join(c.Watching[:min(len(c.Watching), shownWatches)], ", ")
		if c.WatchingCount > shownWatches {
			watches += fmt.Sprintf(" and %d more", c.WatchingCount-shownWatches)
		}
		waits := greyed("–")
		if c.Waiting {
			waits = greyed(duration(c.Waited))
		}
		waits.ID = "w"
		l.add(row, cell{Text: c.Address, Class: "mono from", Title: c.Address}, greyed(cmp.Or(c.Identity, "–")), ago("a", c.Age),
			cell{Text: c.Using, Link: r.tubeLink(c.Using, "")}, cell{Text: watches, Class: "body watches"}, counted("h", uint64(c.HoldingCount)), waits)
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
	p.Curl = r.curl("GET /connections/{connection}", in)
	if err != nil {
		v.Gone, p.status = true, http.StatusNotFound
	}
	still := v.Connection // all but what changes by itself
	still.Age, still.Waited = 0, 0
	p.shape = append(p.shape, fmt.Sprintf("%+v", still))
	return p, nil
}
