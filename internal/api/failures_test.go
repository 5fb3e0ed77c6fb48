package api

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// If there are few jobs, all of them are sampled, even if most are in one tube. If there
// are many, tubes with few jobs leave the rest of their share to other tubes.
func TestSampleOfFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{})
		r.in(func(e *engine.Engine, now int64) {
			s := e.Open(nil)
			for i := range 1000 {
				id, _ := e.PutInto(now, []byte("mail"), engine.Spec{TTR: 1}, []byte("x"))
				e.ReserveJob(now, s, id)
				e.Bury(s, id, 0)
				e.PutInto(now, fmt.Appendf(nil, "tube%d", i%50), engine.Spec{TTR: 1}, []byte("x"))
			}
		})
		var page admin.Failures
		if r.want(200, "GET", "/failures", "", &page); page.Looked != 2000 || len(page.Groups) != 1 || page.Groups[0].Jobs != 1000 {
			t.Errorf("%+v", page)
		}
	})
	for _, test := range []struct {
		counts []uint64
		want   int
	}{{nil, math.MaxInt}, {[]uint64{10, 90}, math.MaxInt}, {[]uint64{1000}, 100}, {[]uint64{1000, 10, 2000}, 45}} {
		if got := fairShare(test.counts, 100); got != test.want {
			t.Errorf("%d, want %d: %v", got, test.want, test.counts)
		}
	}
}

// TestFailures groups failed jobs by tube, class and reason. The search of each group
// finds its jobs, and a task with it changes them.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := rightsPolicy(t)
		who := known["both"]
		r := start(t, Options{Identify: func(*http.Request) (*access.Identity, bool) { return who, true }})
		r.in(func(e *engine.Engine, now int64) {
			e.SetPolicies(onePolicy{&engine.Policy{MaxTimeouts: 1, Exhausted: engine.MoveExhausted, DeadTube: "other"}})
			s := e.Open(nil)
			fail := func(tube, body, note string, end func(id uint64)) {
				id, _ := e.PutInto(now, []byte(tube), engine.Spec{TTR: 1}, []byte(body))
				if end == nil {
					return
				}
				e.ReserveJob(now, s, id)
				if note != "" {
					e.Note(s, id, []byte(note))
				}
				end(id)
			}
			bury := func(id uint64) { e.Bury(s, id, 0) }
			later := func(id uint64) { e.Release(now, s, id, 0, 99) }
			fail("mail", `{"displayName":"Send"}`, "SMTPError: 535 for user 17", bury)
			fail("mail", `{"displayName":"Send"}`, "SMTPError: 535 for user 234", bury)
			fail("mail", `{"displayName":"Send"}`, "SMTPError: 4e0f7a2c-55aa-4b3e-9d6b-0242ac120002 is gone", later)
			fail("mail", "text", "SMTPError: 535 for user 1", bury)
			fail("mail", "text", "", bury)
			fail("mail", `{"class":"Charge","error_class":"Net::ReadTimeout","error_message":"after 5 s"}`, "", bury)
			fail("mail", "text", "", nil)
			fail("news", "text", "", func(id uint64) { e.Tick(now + 2e9) })
			fail("mail", "text", "", func(id uint64) { e.ReleaseJob(now, id, 0, 0) }) // an operator took the job from its worker
		})
		time.Sleep(3 * time.Second)
		for _, test := range []struct{ who, query, want string }{
			{"both", "", "2 mail buried Send SMTPError: * for user * | 1 other buried  timeout from news | 1 mail buried Charge Net::ReadTimeout: after * s | 1 mail buried  SMTPError: * for user * | 1 mail buried  buried | 1 mail delayed Send SMTPError: * is gone"},
			{"both", "?tube=o*", "1 other buried  timeout from news"},
			{"both other", "", "1 other buried  timeout"},
			{"both", "?limit=1", "2 mail buried Send SMTPError: * for user *"},
		} {
			who = known[test.who]
			var page admin.Failures
			r.want(200, "GET", "/failures"+test.query, "", &page)
			var all []string
			for _, g := range page.Groups {
				one := fmt.Sprint(g.Jobs, " ", g.Tube, " ", g.State, " ", g.Class, " ", g.Reason)
				if g.Origin != "" {
					one += " from " + g.Origin
				}
				all = append(all, one)
				var found admin.Found
				if r.want(200, "GET", "/search?q="+url.QueryEscape(g.Q), "", &found); uint64(len(found.Jobs)) != g.Jobs {
					t.Errorf("%s finds %+v", g.Q, found)
				}
				if since := time.Since(time.Unix(g.First, 0)); since < 0 || since > time.Minute || g.Last < g.First {
					t.Errorf("%+v", g)
				}
			}
			if got := strings.Join(all, " | "); got != test.want {
				t.Errorf("%s %s:\n%s, want\n%s", test.who, test.query, got, test.want)
			}
		}
		who = known["both"]
		for q, want := range map[string]int{"reason:smtp": 0, "reason:SMTP": 4, "reason=SMTP*17": 1, "not reason:* state:buried": 0, "buried<1h": 6, "buried>1h": 0, "not buried<1h": 3, "reason:timeout": 1, "reason:ReadTimeout": 1} {
			var found admin.Found
			if r.want(200, "GET", "/search?q="+url.QueryEscape(q), "", &found); len(found.Jobs) != want {
				t.Errorf("%s: %d jobs, want %d: %+v", q, len(found.Jobs), want, found)
			}
		}
		who, _ = new(access.Control).Identify(access.Credentials{})
		if task := r.sweep("mail", `{"do":"kick","state":"buried","q":"reason:ReadTimeout or reason:none"}`); task.Done != 1 {
			t.Errorf("%+v", task)
		}
		var page admin.Failures
		if r.want(200, "GET", "/failures?tube=mail", "", &page); len(page.Groups) != 4 {
			t.Errorf("after the kick of a buried job: %+v", page)
		}
		r.sweep("mail", `{"do":"kick","state":"delayed"}`)
		if r.want(200, "GET", "/failures?tube=mail", "", &page); len(page.Groups) != 4 {
			t.Errorf("after the kick of a delayed job: %+v", page)
		}
	})
}
