package console

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/rights"
)

// A stranger is an identity that has rights on only some tubes.
type stranger struct {
	name   string
	tubes  []string
	rights rights.Set
}

// loginAs logs in users with some rights, and returns their cookies by name.
func loginAs(t *testing.T, strangers []stranger) (*rig, map[string]*http.Cookie) {
	config := access.Config{}
	for _, s := range strangers {
		hash, err := access.HashOf("token-of-" + s.name + "-0123456789")
		if err != nil {
			t.Fatal(err)
		}
		config.Identities = append(config.Identities, access.IdentityConfig{Name: s.name, Tokens: []access.Hash{hash}})
		config.Rules = append(config.Rules, access.RuleConfig{Identities: []string{s.name}, Tubes: s.tubes, Rights: s.rights})
	}
	p, err := access.New(config)
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, p, Options{})
	cookies := make(map[string]*http.Cookie)
	for _, s := range strangers {
		cookies[s.name] = r.login("token-of-" + s.name + "-0123456789")
	}
	return r, cookies
}

var link = regexp.MustCompile(`(?:href|formaction)="([^"]*)"`)

// The console offers users only links that they can open. Rows can be selected only if
// some action on them is permitted.
func TestOffersOnlyPermittedActions(t *testing.T) {
	r, cookies := loginAs(t, []stranger{
		{"root", []string{"*"}, rights.All},
		{"viewer", []string{"*"}, rights.Stats | rights.Peek},
		{"counter", []string{"*"}, rights.Stats},
		{"mailer", []string{"mail*"}, rights.All},
		{"viewer-of-mail", []string{"mail"}, rights.Stats | rights.Peek},
		{"manager-of-mail", []string{"mail"}, rights.Manage | rights.Stats},
		{"putter", []string{"mail"}, rights.Put | rights.Stats | rights.Peek},
	})
	for _, tube := range []string{"mail", "news"} {
		for i := range 3 {
			id := r.put(tube, `{"class":"Send"}`)
			r.in(func(e *engine.Engine, now int64) {
				if i == 1 {
					e.BuryJob(id, 0)
				}
			})
		}
	}
	r.talk("watch mail", "watch news", "reserve-job 1")
	for name, cookie := range cookies {
		seen, left := map[string]bool{}, []string{"/console/"}
		pages := 0
		for len(left) > 0 {
			path := left[0]
			left = left[1:]
			w := r.send("GET", path, nil, cookie)
			if w.Code >= 400 {
				t.Errorf("%s is offered %s: %d", name, path, w.Code)
				continue
			}
			pages++
			if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
				continue
			}
			text := w.Body.String()
			links := link.FindAllStringSubmatch(text, -1)
			for _, m := range regexp.MustCompile(`<input type="checkbox" name="(tube|job|connection)" value="([^"]*)"`).FindAllStringSubmatch(text, -1) {
				for _, button := range regexp.MustCompile(`<button name="do" value="([^"]*)"`).FindAllStringSubmatch(text, -1) {
					if actions[button[1]].on == subject(m[1]) {
						links = append(links, []string{"", "/console/confirm?" + url.Values{"do": {button[1]}, m[1]: {html.UnescapeString(m[2])}}.Encode()})
					}
				}
			}
			for _, m := range links {
				to, _, _ := strings.Cut(html.UnescapeString(m[1]), "#")
				if strings.Contains(to, "/console/static/") || !strings.HasPrefix(to, "/console/") || strings.Contains(path, "/console/confirm") {
					continue
				}
				if u, err := url.Parse(to); err == nil {
					q := u.Query()
					if q.Del("back"); q.Get("sort") != "" || q.Get("span") != "" || q.Get("as") != "" {
						continue // another view of the same page
					}
					u.RawQuery = q.Encode()
					to = u.String()
				}
				if !seen[to] {
					seen[to], left = true, append(left, to)
				}
			}
		}
		t.Log(name, pages)
		if mayEdit := slices.Contains([]string{"root", "mailer"}, name); seen["/console/job/2/edit"] != mayEdit {
			t.Errorf("%s is offered to edit job 2: %v", name, !mayEdit)
		}
		if w := r.send("GET", "/console/job/5/edit", nil, cookie); (w.Code == 200) != (name == "root") || w.Code != 200 && !strings.Contains(w.Body.String(), "You need the ") {
			t.Errorf("%s: the form to edit job 5: %d %s", name, w.Code, w.Body)
		}
		if pages < 5 {
			t.Errorf("%s saw only %d pages: %v", name, pages, seen)
		}
	}
}

// Confirmations for jobs, tubes and actions that do not exist return 404 or 400.
func TestConfirmMissingTarget(t *testing.T) {
	r := start(t, nil, Options{})
	for path, want := range map[string]string{
		"confirm?do=delete-job&job=99999999": "There is no job 99999999.", "confirm?do=clear-tube&tube=nosuch": "There is no tube nosuch",
		"confirm?do=pause-tube&tube=nosuch": "There is no tube nosuch", "job/99999999/edit": "There is no job 99999999.",
	} {
		if text := r.page(404, "/console/"+path); !strings.Contains(text, want) || !strings.Contains(text, "<h1>Not Found</h1>") {
			t.Errorf("%s: %s", path, text)
		}
	}
	// The page of a job that does not exist has the usual navigation.
	if text := r.page(404, "/console/job/99999999"); !strings.Contains(text, ">Connections</a>") || !strings.Contains(text, ">Activity</a>") {
		t.Error(text)
	}
}

// The confirmation for a tube's jobs preselects the state that has jobs, and shows the
// right number.
func TestConfirmState(t *testing.T) {
	r := start(t, nil, Options{})
	for range 8 {
		r.put("ticks", "x")
	}
	r.put("single", "x")
	for path, want := range map[string][]string{
		"do=clear-tube&tube=ticks":                       {"Delete all ready jobs of ticks?", "<b>8</b> ready jobs now", "Deleted jobs cannot be restored."},
		"do=clear-tube&tube=single":                      {"<b>1</b> ready job now"},
		"do=clear-tube&tube=ticks&tube=single":           {"Delete all ready jobs of 2 tubes?", "<b>9</b> ready jobs now"},
		"do=clear-tube&tube=ticks&state=ready&q=SyncCrm": {"Delete the ready jobs of ticks that match SyncCrm?", "The jobs that match, out of <b>8</b> ready now"},
		"do=pause-tube&tube=ticks":                       {"Pause tube ticks?", "Workers get no jobs until then."},
		"do=pause-tube&tube=ticks&tube=single":           {"Pause 2 tubes?", "Workers get no jobs until then."},
		"do=bury-job&job=1":                              {"Bury job 1?", "until someone kicks them."},
		"do=bury-job&job=1&job=2":                        {"Bury 2 jobs?", "until someone kicks them."},
	} {
		text := r.page(200, "/console/confirm?"+path)
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s does not contain %q: %s", path, part, text)
			}
		}
	}
}

// A redrive to the origins works for a tube, a selection and a job. The page that
// confirms a kick in a tube of dead jobs explains where the jobs will wait.
func TestRedrive(t *testing.T) {
	r := start(t, nil, Options{})
	r.in(func(e *engine.Engine, _ int64) {
		e.SetPolicy("payments", "max-attempts=1\nexhausted=move\ndead-tube=payments.dead\n")
	})
	die := func() (id uint64) {
		id = r.put("payments", "x")
		r.talk(fmt.Sprint("reserve-job ", id), "use payments", fmt.Sprint("release ", id, " 0 0"), "use payments")
		return id
	}
	where := func(id uint64) (at string) {
		r.in(func(e *engine.Engine, now int64) {
			st, _ := e.JobStats(now, id)
			at = st.Tube + " " + st.State.String()
		})
		return at
	}
	ids := []uint64{die(), die(), die(), die(), die()}
	if where(ids[0]) != "payments.dead buried" {
		t.Fatal(where(ids[0]))
	}
	text := r.page(200, "/console/tube/payments.dead")
	if primary := regexp.MustCompile(`class="button go"[^>]*\s*[^>]*>([^<]*)<`).FindAllStringSubmatch(text, -1); len(primary) != 1 || primary[0][1] != "Redrive all…" {
		t.Errorf("the primary action is %q", primary)
	}
	if !strings.Contains(text, `<button name="do" value="redrive-job"`) {
		t.Error("a selection cannot be redriven")
	}
	if text := r.page(200, fmt.Sprint("/console/job/", ids[0])); !strings.Contains(text, "do=redrive-job&amp;") || !strings.Contains(text, ">payments</a></dd>") {
		t.Error(text)
	}
	if text := r.page(200, "/console/confirm?do=redrive-jobs&tube=payments.dead&state=buried"); strings.Contains(text, `name="to" maxlength="200" class="mono" value="" required`) || !strings.Contains(text, `placeholder="the origin of each job"`) {
		t.Error(text)
	}
	for _, path := range []string{"do=kick-tube&tube=payments.dead&state=buried", fmt.Sprint("do=kick-job&job=", ids[0])} {
		if text := r.page(200, "/console/confirm?"+path); !strings.Contains(text, "Kicked jobs wait in payments.dead. To return them to payments") {
			t.Error(text)
		}
	}
	r.follow(url.Values{"do": {"redrive-job"}, "job": {fmt.Sprint(ids[0])}})
	r.follow(url.Values{"do": {"redrive-job"}, "job": {fmt.Sprint(ids[1]), fmt.Sprint(ids[2])}})
	r.follow(url.Values{"do": {"kick-job"}, "job": {fmt.Sprint(ids[3])}})
	if where(ids[3]) != "payments.dead ready" || !strings.Contains(r.page(200, "/console/tube/payments.dead?state=ready"), "Redrive all…") {
		t.Errorf("a kicked job is %s, or cannot be redriven", where(ids[3]))
	}
	extra := r.put("payments.dead", "by hand")
	if note := r.follow(url.Values{"do": {"redrive-jobs"}, "tube": {"payments.dead"}, "state": {"ready"}, "to": {""}}); !strings.Contains(note, "1 job redriven, 1 left out (without an origin).") {
		t.Error(note)
	}
	r.follow(url.Values{"do": {"redrive-jobs"}, "tube": {"payments.dead"}, "state": {"buried"}})
	for _, id := range ids {
		if where(id) != "payments ready" {
			t.Errorf("job %d is %s", id, where(id))
		}
	}
	if where(extra) != "payments.dead ready" {
		t.Error(where(extra))
	}
	if text := r.page(200, "/console/tube/payments.dead"); strings.Contains(text, "redrive") {
		t.Error("a tube without origins offers a redrive")
	}
}
