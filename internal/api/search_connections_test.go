package api

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// sorted returns the ids of the connections on all pages.
func (r *rig) sorted(query string, limit int) (ids string) {
	r.t.Helper()
	for cursor, more := "", true; more; more = cursor != "" {
		var page admin.Connections
		r.want(200, "GET", fmt.Sprintf("/connections?limit=%d&%s&cursor=%s", limit, query, url.QueryEscape(cursor)), "", &page)
		if page.Matching == nil {
			r.t.Fatalf("%s: the page has no number of matches", query)
		}
		for _, c := range page.Connections {
			ids += fmt.Sprint(c.ID, " ")
		}
		if cursor = page.Next; cursor == "" && len(strings.Fields(ids)) != int(*page.Matching) {
			r.t.Errorf("%s: the pages have %s of %d", query, ids, *page.Matching)
		}
	}
	return strings.TrimSpace(ids)
}

// For each order and filter, the pages list each connection once while time passes.
func TestSortConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{})
		r.talk("use mail", "watch a")
		time.Sleep(time.Second)
		r.talk("use audit", "watch a", "watch b", "reserve")
		time.Sleep(time.Second)
		r.talk("use news", "put 0 0 60 0\r\n", "watch news", "reserve-job 1", "reserve")
		time.Sleep(time.Second)
		r.talk("use mail")
		time.Sleep(time.Second)
		for _, test := range []struct{ query, want string }{
			{"sort=id", "1 2 3 4"},
			{"sort=-id", "4 3 2 1"},
			{"sort=-age", "1 2 3 4"},
			{"sort=age", "4 3 2 1"},
			{"sort=using", "2 1 4 3"},
			{"sort=-using", "3 1 4 2"},
			{"sort=-watching", "2 1 3 4"},
			{"sort=watching", "4 1 3 2"},
			{"sort=-holding", "3 1 2 4"},
			{"sort=-waited", "2 3 1 4"},
			{"sort=waited", "1 4 3 2"},
			{"sort=identity", "1 2 3 4"},
			{"sort=-waited&waiting=true", "2 3"},
			{"sort=-id&tube=a", "2 1"},
			{"sort=-id&holding=true&q=nobody", ""},
		} {
			for _, limit := range []int{1, 2, 3, 100} {
				time.Sleep(time.Millisecond)
				if got := r.sorted(test.query, limit); got != test.want {
					t.Errorf("%s, %d a page: %s, want %s", test.query, limit, got, test.want)
				}
			}
		}
		for _, query := range []string{"sort=nonsense", "sort=--id", "sort=-", "sort=id&cursor=7", "sort=id&cursor=MSAy", "sort=id&cursor=eCB4IHg", "sort=id&cursor=!"} {
			r.want(400, "GET", "/connections?"+query, "", nil)
		}
	})
}

// Addresses are sorted by their bytes, page by page.
func TestSortByAddress(t *testing.T) {
	r := start(t, Options{})
	for range 5 {
		r.talk("list-tube-used")
	}
	var page admin.Connections
	r.want(200, "GET", "/connections?sort=address", "", &page)
	if !slices.IsSortedFunc(page.Connections, func(a, b admin.Connection) int { return strings.Compare(a.Address, b.Address) }) {
		t.Errorf("%+v", page.Connections)
	}
	if up, down := strings.Fields(r.sorted("sort=address", 2)), strings.Fields(r.sorted("sort=-address", 2)); len(up) != 5 || len(down) != 5 {
		t.Errorf("%s, but %s in reverse", up, down)
	}
}
