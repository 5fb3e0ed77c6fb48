package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// TestReserved lists the jobs of three workers page by page, the longest held first, with
// the details that each caller can see.
func TestReserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := rightsPolicy(t)
		who := known["both"]
		r := start(t, Options{Identify: func(*http.Request) (*access.Identity, bool) { return who, true }})
		r.in(func(e *engine.Engine, now int64) {
			for i := range 6 {
				e.PutInto(now, []byte([]string{"mail", "other"}[i%2]), engine.Spec{TTR: 900}, fmt.Appendf(nil, `{"displayName":"Send","data":{"n":%d}}`, i+1))
			}
			e.PutInto(now, []byte("mail"), engine.Spec{TTR: 900}, []byte("waits"))
		})
		for _, ids := range [][]int{{4, 1}, {6, 2}, {3, 5}} {
			worker := r.talk()
			for _, id := range ids {
				fmt.Fprintf(worker, "reserve-job %d\r\ntouch %d\r\n", id, id)
				synctest.Wait()
				time.Sleep(time.Minute)
			}
		}
		for _, test := range []struct{ who, query, want string }{
			{"both", "?limit=1000", "4 6m 1 Send n: 4 addr | 1 5m 1 Send n: 1 addr | 6 4m 1 Send n: 6 addr | 2 3m 1 Send n: 2 addr | 3 2m 1 Send n: 3 addr | 5 1m 1 Send n: 5 addr"},
			{"both", "?tube=o*,x", "4 6m 1 Send n: 4 addr | 6 4m 1 Send n: 6 addr | 2 3m 1 Send n: 2 addr"},
			{"stats", "?limit=2", "4 6m 1 addr | 1 5m 1 addr | 6 4m 1 addr | 2 3m 1 addr | 3 2m 1 addr | 5 1m 1 addr"},
			{"both mail", "", "1 5m 1 Send n: 1 | 3 2m 1 Send n: 3 | 5 1m 1 Send n: 5"},
			{"stats mail", "", "1 5m 1 | 3 2m 1 | 5 1m 1"},
		} {
			who = known[test.who]
			var all []string
			for path := "/reserved" + test.query; path != ""; {
				var page admin.Reserved
				r.want(200, "GET", path, "", &page)
				for _, j := range page.Jobs {
					one := strings.TrimSpace(fmt.Sprintf("%d %dm %d %s %s", j.ID, (j.Held+1)/60, j.Touches, j.Class, j.Arguments))
					if j.Address != "" {
						one += " addr"
					}
					all = append(all, one)
				}
				if path = ""; page.Next != "" {
					path = "/reserved?limit=2&cursor=" + page.Next
				}
			}
			if got := strings.Join(all, " | "); got != test.want {
				t.Errorf("%s %s: %s, want\n%s", test.who, test.query, got, test.want)
			}
		}
	})
}

// TestClasses counts the classes of all jobs and of a sample. Jobs in other states are
// not counted.
func TestClasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{})
		for _, body := range []string{`{"displayName":"Send"}`, `{"task":"charge","args":[1]}`, "text", `{"displayName":"Send","data":{"n":2}}`} {
			r.in(func(e *engine.Engine, now int64) {
				e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9}, []byte(body))
				e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9, Delay: 900}, []byte(body))
			})
			time.Sleep(time.Minute)
		}
		for query, want := range map[string]admin.Classes{
			"":                       {Classes: []admin.Class{{Class: "Send", Jobs: 2, Oldest: 240, Newest: 60}, {Jobs: 1, Oldest: 120, Newest: 120}, {Class: "charge", Jobs: 1, Oldest: 180, Newest: 180}}, Sampled: 4, Total: 4},
			"?state=delayed&limit=1": {Classes: []admin.Class{{Class: "Send", Jobs: 1, Oldest: 240, Newest: 240}}, Sampled: 1, Total: 4},
			"?state=buried":          {Classes: []admin.Class{}},
		} {
			var got admin.Classes
			r.want(200, "GET", "/tubes/mail/classes"+query, "", &got)
			for i := range got.Classes {
				got.Classes[i].Oldest, got.Classes[i].Newest = (got.Classes[i].Oldest+1)/60*60, (got.Classes[i].Newest+1)/60*60
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", query, diff)
			}
		}
		r.want(404, "GET", "/tubes/none/classes", "", nil)
	})
}
