package console

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// A connectionQuery is what the URL of the list of connections says.
type connectionQuery struct {
	Sort, Tube, Q, Cursor string
	Asked                 string // what the URL has as sort
	Only                  string // waiting, holding, or nothing
	base                  string
}

// A connectionsView is the page of the connections.
type connectionsView struct {
	Query    connectionQuery
	List     list
	Matching uint64
	Counted  bool // else they are in no particular order, and nobody knows how many match
	Next     string
	First    string
}

// sortedAlone is up to how many connections are shown in the order in which they came, if nobody asks for an order: for any order the server looks at all
// of them, once a second as long as somebody looks at the page.
const sortedAlone = 1000

func connectionsPage(r *request) (*page, error) {
	asked := r.FormValue("sort")
	q := connectionQuery{Sort: asked, Asked: asked, Tube: r.FormValue("tube"), Q: r.FormValue("q"), Only: r.FormValue("only"), Cursor: r.FormValue("cursor"), base: r.site.base}
	if q.Only != "waiting" && q.Only != "holding" {
		q.Only = ""
	}
	stats, err := r.api().GetStats(r.Context())
	if err != nil {
		return nil, err
	}
	if asked == "" && q.Cursor == "" && stats.Connections.Current <= sortedAlone {
		q.Sort = "id"
	}
	found, err := r.api().ListConnections(r.Context(), q.input())
	if err != nil {
		return nil, err
	}
	v := &connectionsView{Query: q, List: r.clientList(found.Connections, q.columns())}
	if v.Counted = found.Matching != nil; v.Counted {
		v.Matching = *found.Matching
	}
	if found.Next != "" {
		v.Next = q.link(q.Sort, found.Next)
	}
	if q.Cursor != "" {
		v.First = q.link(q.Sort, "")
	}
	p := newPage("connections", "Connections", "connections", v)
	p.Server = &stats
	p.Curl = r.curl("GET /connections", q.input())
	return p, nil
}

// input is what the API is asked for.
func (q connectionQuery) input() *admin.ListConnections {
	return &admin.ListConnections{Sort: q.Sort, Tube: q.Tube, Q: q.Q, Waiting: q.Only == "waiting", Holding: q.Only == "holding", Cursor: q.Cursor}
}

// link is the URL of the page in another order, or of another part of the list.
func (q connectionQuery) link(sort, cursor string) string {
	return withQuery(q.base+"connections", "sort", sort, "tube", q.Tube, "q", q.Q, "only", q.Only, "cursor", cursor)
}

// columns returns the heads, each with the page in its order: texts begin with the smallest, numbers with the largest, and the other way round if
// it is so already.
func (q connectionQuery) columns() []column {
	all := slices.Clone(clientColumns)
	for i := range all {
		c := &all[i]
		first, second := "-"+c.sort, c.sort
		if c.Left && c.sort != "watching" {
			first, second = second, first
		}
		to := first
		if q.Sort == first {
			to = second
		}
		if c.Link = q.link(to, ""); strings.TrimPrefix(q.Sort, "-") == c.sort {
			c.Sorted = direction(q.Sort)
		}
	}
	return all
}

// direction is what a screen reader is told of a column that sort names.
func direction(sort string) string {
	if strings.HasPrefix(sort, "-") {
		return "descending"
	}
	return "ascending"
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
