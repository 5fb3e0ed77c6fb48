package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api"
)

func (r *rig) serveAPI() string {
	s := httptest.NewServer(r.api)
	r.t.Cleanup(s.Close)
	return s.URL
}

// several starts a console with two other servers, one of which is unreachable.
func several(t *testing.T, opt Options) (own, far *rig) {
	t.Helper()
	far = start(t, nil, Options{})
	url := far.serveAPI()
	own = startWith(t, nil, opt, func(a *api.API) []Server {
		a.AddServer("far", false, api.NewRemote(url, nil, nil))
		a.AddServer("away", true, api.NewRemote("http://127.0.0.1:1", nil, nil))
		return []Server{
			{Name: "far", URL: url},
			{Name: "away", ReadOnly: true, URL: "http://127.0.0.1:1"},
		}
	})
	return own, far
}

var consoleLink = regexp.MustCompile(`(?:href|action)="(/console/[^"]*)"`)

// Every page exists for each server, and links to the same server's pages.
func TestServers(t *testing.T) {
	own, far := several(t, Options{})
	far.put("mail", `{"n":1}`)
	far.put("mail", "x")
	far.talk("watch mail", "reserve-job 2")
	const base = "/console/s/far/"
	for _, path := range []string{"", "tubes", "tubes?sort=-attention", "tube/mail", "tube/mail?state=buried", "tube/mail?state=reserved", "tube/none", "job/1", "job/2", "job/99", "activity", "server",
		"working", "failures", "connections", "search?q=n+tube:mail", "confirm?do=clear-tube&tube=mail&state=ready", "confirm?do=delete-job&job=1", "confirm?do=drain"} {
		w := own.send("GET", base+path, nil)
		text := w.Body.String()
		if w.Code != 200 && w.Code != 404 {
			t.Errorf("%s: %d %s", path, w.Code, text)
		}
		main := text[strings.Index(text, "<main"):]
		if strings.Contains(text, "ZgotmplZ") || strings.Contains(text, "<no value>") {
			t.Errorf("%s: %s", path, text)
		}
		for _, link := range consoleLink.FindAllStringSubmatch(main, -1) {
			if !strings.HasPrefix(link[1], base) {
				t.Errorf("%s leads to %s", path, link[1])
			}
			if back := regexp.MustCompile(`back=([^&"]*)`).FindStringSubmatch(link[1]); back != nil {
				if to, err := url.QueryUnescape(back[1]); err != nil || !strings.HasPrefix(to, base) {
					t.Errorf("%s leads back to %s", path, to)
				}
			}
		}
	}
	if text := own.page(200, "/console/s/far/tubes"); !strings.Contains(text, ">mail</a>") {
		t.Error(text)
	}
	if text := own.page(404, "/console/s/none/"); !strings.Contains(text, "Unknown server") {
		t.Error(text)
	}
	if text := own.page(502, "/console/s/away/tubes"); !strings.Contains(text, "<p>The server away does not answer: ") || !strings.Contains(text, "data-live") {
		t.Error(text)
	}
}

// An action on another server is executed on that server and logged on this one. It leads
// back to the page of the other server.
func TestServerActions(t *testing.T) {
	own, far := several(t, Options{})
	for range 3 {
		far.put("mail", "x")
	}
	const base = "/console/s/far/"
	for _, step := range []struct{ form, want string }{
		{"do=bury-job&job=1", "Job 1 buried."},
		{"do=pause-tube&tube=mail&seconds=9", "Tube mail paused until "},
		{"do=clear-tube&tube=mail&state=ready", "2 jobs deleted."},
		{"do=drain", "Server is draining."},
		{"do=undrain", "Server is accepting jobs again."},
		{"do=delete-job&job=1", "Job 1 deleted."},
		{"do=put-job&tube=fresh&body=hello&delay=700", "Tube fresh has a new job."},
		{"do=kick-tube&tube=fresh&state=delayed", "1 job kicked."},
		{"do=copy-job&job=4&to=other", "Job 4 copied."},
	} {
		form, err := url.ParseQuery(step.form)
		if err != nil {
			t.Fatal(err)
		}
		form.Set("back", base+"tubes")
		w := own.send("POST", base+"do", form)
		if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || !strings.HasPrefix(to, base+"tubes?note=") || !strings.Contains(own.page(200, to), step.want) {
			t.Errorf("%s: %d %s, want %s: %s", step.form, w.Code, to, step.want, w.Body)
		}
	}
	if w := own.send("POST", "/console/s/away/do", url.Values{"do": {"delete-job"}, "job": {"1"}}); w.Code != http.StatusForbidden {
		t.Errorf("a delete on a read-only server: %d", w.Code)
	}
	if text := own.page(200, "/console/activity"); !strings.Contains(text, `>server</span> far`) {
		t.Error(text)
	}
	if text := own.page(200, "/console/s/far/activity"); !strings.Contains(text, "<b>copy job</b>") || strings.Contains(text, ">server</span> far") {
		t.Error(text)
	}
}

// The overview lists all servers, and does not wait for unreachable ones.
func TestServerList(t *testing.T) {
	own, far := several(t, Options{})
	for range 1234 {
		far.put("mail", "x")
	}
	until(t, func() bool {
		text := own.page(200, "/console/")
		return strings.Contains(text, "1\u202f234") && strings.Contains(text, `href="/console/s/far/"`) && strings.Contains(text, ">does not answer: ")
	})
	if text := own.page(200, "/console/tubes"); !strings.Contains(text, `<a href="/console/s/away/">away</a>`) {
		t.Error(text)
	}
}

// Users without rights on all local tubes do not see other servers and cannot use them.
func TestServerRights(t *testing.T) {
	far := start(t, nil, Options{})
	far.put("mail", "secret")
	address := far.serveAPI()
	own := startWith(t, policyOf(t), Options{}, func(a *api.API) []Server {
		a.AddServer("far", false, api.NewRemote(address, nil, nil))
		return []Server{{Name: "far", URL: address}}
	})
	root, mailer := own.login(rootToken), own.login(mailerToken)
	if text := own.page(200, "/console/", mailer); strings.Contains(text, "/console/s/") {
		t.Error(text)
	}
	if text := own.page(403, "/console/s/far/tube/mail", mailer); strings.Contains(text, "secret") {
		t.Error(text)
	}
	if text := own.page(200, "/console/s/far/tube/mail", root); !strings.Contains(text, "secret") {
		t.Error(text)
	}
	if w := own.send("GET", "/console/s/far/", nil); w.Code != http.StatusSeeOther {
		t.Errorf("without a session: %d", w.Code)
	}
	if w := own.send("POST", "/console/s/far/do", url.Values{"do": {"delete-job"}, "job": {"1"}, "back": {"/console/s/far/tubes"}}, mailer); w.Code != http.StatusSeeOther {
		t.Errorf("%d", w.Code)
	}
	var st admin.Stats
	if far.apiGet("/stats", &st); st.Jobs.Ready != 1 {
		t.Error("the job was deleted without a right")
	}
}

// Responses of another server are shown as text.
func TestHostileServer(t *testing.T) {
	bad := `<script>alert(1)</script>`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		text, _ := json.Marshal(map[string]any{
			"version": bad, "name": bad, "tubes": []any{map[string]any{"name": bad, "jobs": map[string]int{"ready": 1}}}, "findings": []any{map[string]any{"kind": bad, "severity": bad, "tube": bad, "text": bad}}, "total": 1,
			"jobs": map[string]int{"ready": 1}, "everywhere": []string{"stats", "peek"}, "commands": map[string]int{bad: 1},
		})
		if strings.HasSuffix(r.URL.Path, "/jobs") {
			text = fmt.Appendf(nil, `{"jobs":[{"id":1,"tube":%q,"state":%q,"body":%q}]}`, bad, bad, bad)
		}
		if strings.Contains(r.URL.Path, "/jobs/") {
			text = fmt.Appendf(nil, `{"id":1,"tube":%q,"state":%q,"body":%q}`, bad, bad, bad)
		}
		if strings.HasSuffix(r.URL.Path, "/tubes") {
			text = fmt.Appendf(nil, `{"tubes":[{"name":%q}],"matching":1,"jobs":{}}`, bad)
		}
		w.Write(text)
	}))
	t.Cleanup(s.Close)
	own := startWith(t, nil, Options{}, func(a *api.API) []Server {
		a.AddServer("bad", false, api.NewRemote(s.URL, nil, nil))
		return []Server{{Name: "bad", URL: s.URL}}
	})
	for _, path := range []string{"/console/", "/console/s/bad/", "/console/s/bad/tubes", "/console/s/bad/tube/mail", "/console/s/bad/job/1", "/console/s/bad/server", "/console/s/bad/connections", "/console/s/bad/activity"} {
		w := own.send("GET", path, nil)
		for _, found := range tag.FindAllString(w.Body.String(), -1) {
			if !strings.HasPrefix(found, `<script src="/console/static/`) {
				t.Errorf("%s has %s", path, found)
			}
		}
	}
}

// The console of a cluster member shows the other members, problems first. A server
// without a cluster shows no members.
func TestCluster(t *testing.T) {
	c := admin.Cluster{Self: 1, Leader: 2, Term: 7, Quorum: true, Members: []admin.ClusterMember{
		{ID: 1, Address: "10.0.0.1:11400", Role: "voter", Reachable: true, Progress: &admin.Progress{Applied: 90, Lag: 3}, Version: "1.2"},
		{ID: 2, Address: "10.0.0.2:11400", Role: "leader", Reachable: true, Progress: &admin.Progress{Applied: 93}, Version: "1.2", Host: "db-2", Console: "https://db-2:11380/console/"},
		{ID: 3, Address: "<script>", Role: "voter", Heard: new(int64(320)), MustRejoin: true},
	}}
	var err error
	r := startWith(t, nil, Options{}, func(*api.API) []Server { return nil }, func(o *api.Options) {
		o.Cluster = func() (admin.Cluster, error) { return c, err }
		o.Transfer = func(_ context.Context, to uint64) error { c.Leader = to; return nil }
	})
	text := r.page(200, "/console/server")
	places := []int{strings.Index(text, "&lt;script&gt;"), strings.Index(text, "10.0.0.2"), strings.Index(text, "10.0.0.1")}
	if places[0] < 0 || places[0] > places[1] || places[1] > places[2] || !strings.Contains(text, `<b><span id="cl-leader" class="">db-2</span></b> leads`) {
		t.Errorf("%v %s", places, text)
	}
	for _, want := range []string{" ago</td>", "Member 3 at &lt;script&gt; must join again", `class="zero" data-label="Applied">–`, `href="https://db-2:11380/console/" title="Console of the member">db-2</a>`, `10.0.0.1:11400</span><span class="tag">this member</span>`, "do=lead&amp;member=1&amp;"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not contain %q: %s", want, text)
		}
	}
	if text := r.page(200, "/console/"); !strings.Contains(text, "member 3 at &lt;script&gt; must join again") || !strings.Contains(text, `href="/console/server#cluster">Cluster</a>`) {
		t.Error(text)
	}
	if text := r.page(200, "/console/confirm?do=lead&member=1"); !strings.Contains(text, "Transfer leadership to member 1?") {
		t.Error(text)
	}
	if note := r.follow(url.Values{"do": {"lead"}, "member": {"1"}, "back": {"/console/server"}}); c.Leader != 1 || !strings.Contains(note, "Member 1 leads.") {
		t.Errorf("%d: %s", c.Leader, note)
	}
	c.Leader, c.Quorum = 0, false
	if text := r.page(200, "/console/server"); !strings.Contains(text, "No leader; the queue is available after an election.") {
		t.Error(text)
	}
	err = errors.New("the member is closed")
	if text := r.page(200, "/console/server"); !strings.Contains(text, "The member is closed.") {
		t.Error(text)
	}
	if text := start(t, nil, Options{}).page(200, "/console/server"); strings.Contains(text, "luster") {
		t.Error(text)
	}
}

// A counter counts the operations that a console sends to its own server.
type counter struct {
	*admin.Client
	asked map[string]int
}

func (c counter) Do(ctx context.Context, route string, in, out any) error {
	c.asked[route]++
	return c.Client.Do(ctx, route, in, out)
}

// A live page requests the rights and the counts from its server at most once per second.
func TestLivePageAsksOnce(t *testing.T) {
	var own *rig
	asked := make(map[string]int)
	own, _ = several(t, Options{Open: func(who access.Caller, server string) *admin.Client {
		if server != "" {
			return nil
		}
		return admin.On(counter{own.api.Open(who, ""), asked})
	}})
	own.put("mail", "x")
	for _, path := range []string{"", "tubes", "tube/mail", "connections", "server"} {
		r, makePage := own.viewOf("/console/" + path)
		clear(asked)
		if _, err := own.live.values(r, makePage); err != nil {
			t.Error(err)
		}
		for _, route := range []string{"GET /me", "GET /stats"} {
			if asked[route] != 1 {
				t.Errorf("/console/%s asks for %s %d times", path, route, asked[route])
			}
		}
	}
}
