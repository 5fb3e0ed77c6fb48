package console

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/gzipped"
)

// hostile contains bodies as an attacker would send them.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</pre><script>`, `{"displayName":"<script>alert(1)</script>","x":"</script>"}`,
	"\x00\xff\xfe<script>", `javascript:alert(1)`, `a:1:{s:8:"<script>";s:8:"<script>";}`, "{{.}}", "\u202e\u2028", "",
}

// everything returns a rig with a job of each kind and a tube with a difficult name, and
// the paths of all pages.
func everything(t *testing.T) (*rig, []string) {
	r := start(t, nil, Options{})
	paths := []string{"", "?span=1h", "?span=24h", "tubes", "tubes?q=mail&has=ready&sort=-buried", "tubes?q=none", "tube/none", "policies", "schedules", "schedule", "schedule/next?cron=<script>", "failures", "failures?tube=none", "working", "working?tube=none", "connections", "connections?only=waiting&q=x",
		"connection/99", "activity", "server", "login", "login?next=/console/tubes", "job/99", "tube/mail/put", "tubes?sort=-attention",
		"search", "search?q=script", "search?q=script+tube:mail+state:ready", "search?q=/(?i)SCRIPT/+tube:mail", "search?q=/x%20%3D%201", "search?q=nothing", "search?q=x+tube:none",
		"confirm?do=change-job&job=1", "confirm?do=copy-job&job=1", "confirm?do=move-job&job=1&job=2", "confirm?do=change-jobs&tube=mail&state=ready", "confirm?do=release-jobs&tube=mail", "confirm?do=bury-jobs&tube=mail&state=ready",
		"confirm?do=clear-tube&tube=mail&state=ready&q=<script>alert(1)</script>", "confirm?do=cancel-task&task=1", "tube/a%2Fb%3Bc?state=ready",
		"tube/mail", "tube/mail?state=ready", "tube/mail?state=buried", "tube/mail?state=delayed", "tube/mail?state=reserved", "connection/1",
		"confirm?do=kick-tube&tube=mail&state=buried", "confirm?do=clear-tube&tube=mail&tube=a%2Fb%3Bc&state=ready", "confirm?do=move-jobs&tube=mail", "confirm?do=redrive-jobs&tube=mail", "confirm?do=pause-tube&tube=mail",
		"confirm?do=delete-job&job=1", "confirm?do=release-job&job=1", "confirm?do=close-connection&connection=1", "confirm?do=drain", "confirm?do=undrain"}
	for _, body := range hostile {
		id := r.put("mail", body)
		for _, as := range []string{"", "?as=json", "?as=text", "?as=hex", "?as=php"} {
			paths = append(paths, fmt.Sprintf("job/%d%s", id, as))
		}
		if id != 3 { // a worker holds job 3
			paths = append(paths, fmt.Sprintf("job/%d/edit", id))
		}
	}
	r.put("a/b;c", "x")
	r.in(func(e *engine.Engine, now int64) {
		e.BuryJob(2, 1)
		e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9, Delay: 99}, []byte("later"))
		e.Pause(now, []byte("a/b;c"), 60)
	})
	r.talk("watch mail", "reserve-job 3")
	return r, paths
}

var tag = regexp.MustCompile(`<(script|img)\b[^>]*>`)

// Every page works without JavaScript, has no inline script or style, and shows bodies as
// text.
func TestPages(t *testing.T) {
	r, paths := everything(t)
	for _, path := range paths {
		w := r.send("GET", "/console/"+path, nil)
		text := w.Body.String()
		if w.Code != 200 && !strings.Contains(path, "99") && path != "tube/none" {
			t.Errorf("%s: %d %s", path, w.Code, r.log)
		}
		if got := w.Header().Get("Content-Security-Policy"); got != contentSecurityPolicy || w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", path, w.Header())
		}
		for _, found := range tag.FindAllString(text, -1) {
			if !strings.HasPrefix(found, `<script src="/console/static/`) {
				t.Errorf("%s has %s", path, found)
			}
		}
		if strings.Contains(text, " style=") || strings.Contains(text, "onerror=alert(1)>") || strings.Contains(text, "ZgotmplZ") || strings.Contains(text, "<no value>") {
			t.Errorf("%s has an error:\n%s", path, text)
		}
		if strings.Count(text, "<h1") < 1 || !strings.Contains(text, "</html>") {
			t.Errorf("%s has no heading, or is incomplete", path)
		}
	}
	if strings.Contains(r.log.String(), "level=ERROR") {
		t.Error(r.log)
	}
	// The page contains the first tubes without JavaScript.
	if text := r.page(200, "/console/"); !strings.Contains(text, ">mail</a>") || !strings.Contains(text, `href="/console/tube/a%2Fb%3Bc">a/b;c</a>`) {
		t.Error(text)
	}
	if text := r.page(200, "/console/job/1"); !strings.Contains(text, "&lt;script&gt;alert(1)&lt;/script&gt;") {
		t.Error(text)
	}
	w := r.send("GET", "/console/job/1/body", nil)
	if w.Header().Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(w.Header().Get("Content-Disposition"), "attachment") || w.Body.String() != hostile[0] {
		t.Errorf("%v %s", w.Header(), w.Body)
	}
}

// Each action performs its operation through the API, and reports the result.
func TestActions(t *testing.T) {
	synctest.Test(t, testActions) // because a page waits for a task, and a job has a delay
}

func testActions(t *testing.T) {
	r := start(t, nil, Options{})
	for range 4 {
		r.put("mail", "x")
	}
	r.put("news", "y")
	r.talk("watch mail", "reserve-job 4")
	for _, step := range []struct{ form, want string }{
		{"do=bury-job&job=1&job=2&back=/console/tube/mail", "2 jobs buried."},
		{"do=kick-job&job=1", "Job 1 kicked."},
		{"do=kick-tube&tube=mail&state=buried", "1 job kicked."},
		{"do=move-jobs&tube=mail&state=ready&to=news&count=1", "1 job moved."},
		{"do=move-jobs&tube=mail&state=ready", "To the tube: enter the name of a tube."},
		{"do=pause-tube&tube=mail&tube=news&seconds=60", "2 tubes paused until 2000-01-01 00:01 UTC."},
		{"do=pause-tube&tube=mail&seconds=soon", "Duration: enter a time such as"},
		{"do=resume-tube&tube=mail&tube=nowhere", "1 tube resumed. 1 tube failed: There is no tube nowhere"},
		{"do=put-job&tube=fresh&body=hello&priority=7&delay=0&ttr=9", "Tube fresh has a new job."},
		{"do=put-job&tube=fresh&body=%25%25&base64=yes", "Body: enter base64."},
		{"do=put-job&tube=-x&body=hello", "cannot be the name of a tube"},
		{"do=release-job&job=4&delay=5", "Job 4 released."},
		{"do=delete-job&job=6", "Job 6 deleted."},
		{"do=delete-job&job=6&job=2", "1 job deleted. 1 job failed: There is no job 6."},
		{"do=clear-tube&tube=news&state=ready", "2 jobs deleted."},
		{"do=put-job&tube=fresh&body=needle", "Tube fresh has a new job."},
		{"do=change-job&job=7&priority=3&delay=&ttr=", "Job 7 changed."},
		{"do=change-job&job=7&priority=&delay=&ttr=", "No change: want"},
		{"do=copy-job&job=7&to=other", "Job 7 copied."},
		{"do=move-job&job=8&to=fresh", "Job 8 moved."},
		{"do=change-jobs&tube=fresh&state=ready&delay=99", "2 jobs changed."},
		{"do=kick-tube&tube=fresh&state=delayed&q=nothing", "0 jobs kicked."},
		{"do=kick-tube&tube=fresh&state=delayed&q=needle", "2 jobs kicked."},
		{"do=bury-jobs&tube=fresh&state=ready&count=1", "1 job buried."},
		{"do=clear-tube&tube=fresh&state=ready&q=/(/", "Regexp: error parsing"},
		{"do=cancel-task&task=1", "Task 1 has already ended."},
		{"do=close-connection&connection=1", "Connection 1 closed."},
		{"do=drain", "Server is draining."},
		{"do=put-job&tube=fresh&body=hello", "The server is draining"},
		{"do=undrain", "Server is accepting jobs again."},
	} {
		form, err := url.ParseQuery(step.form)
		if err != nil {
			t.Fatal(err)
		}
		if text := r.follow(form); !strings.Contains(text, step.want) {
			t.Errorf("%s: the page does not contain %q: %s", step.form, step.want, regexp.MustCompile(`(?s)<p class="note.*?</p>`).FindString(text))
		}
	}
	r.in(func(e *engine.Engine, now int64) {
		if st, _ := e.TubeStats(now, []byte("mail")); st.Ready != 1 || st.Delayed != 1 || st.Pause != 0 {
			t.Errorf("%+v", st)
		}
	})
	if text := r.page(200, "/console/activity"); !strings.Contains(text, "<b>end task</b>") || !strings.Contains(text, `<span class="tag">console</span>`) {
		t.Error(text)
	}
}

// Dangerous actions ask for confirmation with the number of jobs. Deleting many jobs
// requires the name of the tube.
func TestConfirm(t *testing.T) {
	r := start(t, nil, Options{})
	r.in(func(e *engine.Engine, now int64) {
		for range typedAbove + 1 {
			e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9}, nil)
		}
	})
	text := r.page(200, "/console/confirm?do=clear-tube&tube=mail&state=ready&back=//evil.example")
	for _, want := range []string{"Delete all ready jobs of mail?", "<b>1\u202f001</b> ready jobs", `name="must-type" value="mail"`, `name="back" value="/console/"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not contain %q:\n%s", want, text)
		}
	}
	form := url.Values{"do": {"clear-tube"}, "tube": {"mail"}, "state": {"ready"}, "must-type": {"mail"}, "typed": {"male"}}
	if w := r.send("POST", "/console/do", form); w.Code != 422 || !strings.Contains(w.Body.String(), "Not deleted. To confirm, type") || !strings.Contains(w.Body.String(), `name="must-type"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	again := r.follow(url.Values{"do": {"change-jobs"}, "tube": {"mail"}, "state": {"ready"}, "priority": {"99999999999"}, "delay": {"7"}})
	for _, want := range []string{`role="alert">Priority: enter a number`, `name="priority" value="99999999999"`, `name="delay" value="7"`} {
		if !strings.Contains(again, want) {
			t.Errorf("the form does not contain %q:\n%s", want, again)
		}
	}
	for _, bad := range []string{"do=nothing", "do=kick-tube", "do=kick-tube" + strings.Repeat("&tube=a&tube=b", 300)} {
		if w := r.send("GET", "/console/confirm?"+bad, nil); w.Code != 400 {
			t.Errorf("%.40s: %d", bad, w.Code)
		}
	}
}

// offers reports whether a page offers a change of the queue.
func offers(text string) bool {
	return strings.Contains(text, "/console/confirm?") || strings.Contains(text, `name="do"`) || strings.Contains(text, "/put") || strings.Contains(text, "/edit")
}

// A read-only console offers no changes and refuses all of them.
func TestReadOnly(t *testing.T) {
	r := start(t, nil, Options{ReadOnly: true})
	r.put("mail", "x")
	for _, path := range []string{"do", "job/1/edit", "tube/mail/policy", "s/none/do"} {
		if w := r.send("POST", "/console/"+path, url.Values{"do": {"delete-job"}, "job": {"1"}, "text": {"y"}, "now-rate": {"1/s"}}); w.Code != 403 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	r.page(403, "/console/confirm?do=delete-job&job=1")
	for _, path := range []string{"", "tubes", "tube/mail", "job/1", "server", "connections"} {
		if text := r.page(200, "/console/"+path); offers(text) {
			t.Errorf("%s offers a change", path)
		}
	}
	r.page(200, "/console/job/1")
}

// A GET request, or a request from another origin, changes nothing.
func TestForeignPages(t *testing.T) {
	r := start(t, nil, Options{})
	r.put("mail", "x")
	if w := r.send("GET", "/console/do?do=delete-job&job=1", nil); w.Code != 404 {
		t.Errorf("GET: %d", w.Code)
	}
	for _, path := range []string{"do", "login", "logout", "theme"} {
		h := httptest.NewRequest("POST", "/console/"+path, strings.NewReader("do=delete-job&job=1"))
		h.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		h.Header.Set("Sec-Fetch-Site", "cross-site")
		w := httptest.NewRecorder()
		r.ServeHTTP(w, h)
		if w.Code != 403 {
			t.Errorf("%s from elsewhere: %d", path, w.Code)
		}
	}
	r.page(200, "/console/job/1")
	for _, back := range []string{"https://evil.example", "//evil.example", "/console/\\evil", "/console/\r\nX: y", "/api"} {
		if w := r.send("POST", "/console/theme", url.Values{"back": {back}, "theme": {"dark"}}); w.Header().Get("Location") != "/console/" {
			t.Errorf("%q leads to %q", back, w.Header().Get("Location"))
		}
	}
}

// The rights are checked for each operation, independently of the page.
func TestRights(t *testing.T) {
	r := start(t, policyOf(t), Options{})
	r.put("mail", "a secret")
	r.put("payroll", "a secret")
	mailer := r.login(mailerToken)
	for _, path := range []string{"", "tubes", "tubes?q=pay", "tube/mail", "job/1"} {
		if text := r.page(200, "/console/"+path, mailer); strings.Contains(text, "payroll") || strings.Contains(text, "a secret") || offers(text) {
			t.Errorf("%s shows too much:\n%s", path, text)
		}
	}
	for _, path := range []string{"tube/payroll", "job/2", "job/1/body", "connections", "connection/1", "activity"} {
		r.page(403, "/console/"+path, mailer)
	}
	for _, form := range []string{"do=delete-job&job=1", "do=kick-tube&tube=mail&state=buried", "do=clear-tube&tube=payroll&state=ready", "do=put-job&tube=mail&body=x", "do=drain", "do=pause-tube&tube=mail&seconds=9"} {
		v, _ := url.ParseQuery(form)
		if text := r.follow(v, mailer); !strings.Contains(text, "note bad") || !strings.Contains(text, "You need the ") {
			t.Errorf("%s was not refused", form)
		}
	}
	if text := r.page(403, "/console/connections", mailer); !strings.Contains(text, "<p>You need the stats right on every tube") {
		t.Error(text)
	}
	if text := r.page(200, "/console/job/1", r.login(rootToken)); !strings.Contains(text, "a secret") || !strings.Contains(text, "root</span> · log out") {
		t.Error(text)
	}
}

// A user with only the put right is redirected to the page that puts jobs, and is offered
// no other page.
func TestPutOnly(t *testing.T) {
	r := start(t, policyOf(t), Options{})
	putter := r.login(putterToken)
	if w := r.send("GET", "/console/", nil, putter); w.Code != 303 || w.Header().Get("Location") != "/console/put" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	text := r.page(200, "/console/put?tube=mail", putter)
	if strings.Contains(text, "/console/tube") || strings.Contains(text, ">Overview<") || !strings.Contains(text, `value="/console/put?tube=mail"`) {
		t.Error(text)
	}
	if text := r.follow(url.Values{"do": {"put-job"}, "tube": {"mail"}, "body": {"x"}, "back": {"/console/put?tube=mail"}}, putter); !strings.Contains(text, "Tube mail has a new job.") {
		t.Error(text)
	}
	for _, path := range []string{"tubes", "tube/mail", "tube/news/put", "put?tube=news", "confirm?do=pause-tube&tube=mail", "confirm?do=kick-job&job=1"} {
		if text := r.page(403, "/console/"+path, putter); !strings.Contains(text, "You need the ") || strings.Contains(text, "<form class=") {
			t.Errorf("%s: %s", path, text)
		}
	}
	r.page(403, "/console/put", r.login(mailerToken))
	if text := r.page(200, "/console/", r.login(mailerToken)); strings.Contains(text, ">Connections<") || strings.Contains(text, ">Activity<") || !strings.Contains(text, ">Tubes<") {
		t.Error(text)
	}
}

// A session represents a token, which the browser does not store.
func TestLogin(t *testing.T) {
	r := start(t, policyOf(t), Options{})
	w := r.send("GET", "/console/tube/mail?state=ready", nil)
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/console/login?next=%2Fconsole%2Ftube%2Fmail%3Fstate%3Dready" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	h := httptest.NewRequest("GET", "/console/tubes", nil)
	h.Header.Set("Accept", eventStream)
	w = httptest.NewRecorder()
	if r.ServeHTTP(w, h); w.Code != 401 {
		t.Errorf("a stream: %d", w.Code)
	}
	cookie := r.login(rootToken)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || strings.Contains(cookie.Value, rootToken) || len(cookie.Value) < 40 || cookie.Name != cookiePlain {
		t.Errorf("%+v", cookie)
	}
	r.page(200, "/console/", cookie)
	h = httptest.NewRequest("GET", "/api/v1/me", nil)
	h.AddCookie(cookie)
	w = httptest.NewRecorder()
	r.api.ServeHTTP(w, h)
	if !strings.Contains(w.Body.String(), `"identity":"root"`) {
		t.Errorf("the API does not accept the session: %s", w.Body)
	}
	r.page(303, "/console/", &http.Cookie{Name: cookiePlain, Value: rootToken})

	// A session ends at a logout, or when it expires.
	if w := r.send("POST", "/console/logout", url.Values{}, cookie); w.Code != 303 || w.Result().Cookies()[0].MaxAge >= 0 {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	r.page(303, "/console/", cookie)
	begun := time.Now()
	now := begun
	r.sessions.now = func() time.Time { return now }
	idle, used := r.login(rootToken), r.login(rootToken)
	for range 4 {
		now = now.Add(sessionIdle - time.Minute)
		if r.sessions.has(requestWith(used)) != (now.Sub(begun) < sessionLongest) {
			t.Errorf("a used session, after %v", now.Sub(begun))
		}
	}
	if r.sessions.has(requestWith(idle)) {
		t.Error("an unused session did not end")
	}

	// The rate of guesses is limited.
	now = now.Add(time.Hour)
	for i := range 12 {
		want := 403
		if i >= 10 {
			want = 429
		}
		if w := r.send("POST", "/console/login", url.Values{"token": {"wrong-token-0123456789"}}); w.Code != want {
			t.Errorf("attempt %d: %d, want %d", i, w.Code, want)
		}
	}
	if n := strings.Count(r.log.String(), "a login to the console was refused"); n != 10 {
		t.Errorf("%d lines in the log about 12 refused logins", n)
	}
	r.login(rootToken) // guesses do not block a valid token
	for range 12 {
		r.login(rootToken)
	}
	if strings.Contains(r.log.String(), rootToken) {
		t.Error("the token is in the log")
	}
}

func requestWith(c *http.Cookie) *http.Request {
	h := httptest.NewRequest("GET", "/console/", nil)
	h.AddCookie(c)
	return h
}

// The number of sessions of a token is limited. A new session replaces the least recently
// used session of its token.
func TestManySessions(t *testing.T) {
	s := NewSessions()
	now := time.Now()
	s.now = func() time.Time { now = now.Add(time.Millisecond); return now }
	root, first, used := s.begin("a"), s.begin("b"), s.begin("b")
	has := func(secret string) bool { return s.has(requestWith(&http.Cookie{Name: cookiePlain, Value: secret})) }
	for range maxSessions {
		has(used)
		s.begin("b")
	}
	if len(s.open) != 1+maxSessions || !has(root) || has(first) || !has(used) {
		t.Errorf("%d sessions, of the others: %v %v %v", len(s.open), has(root), has(first), has(used))
	}
}

// stream opens a stream of a page on a real connection.
func (r *rig) stream(srv *httptest.Server, view string) *http.Response {
	r.t.Helper()
	h, _ := http.NewRequest("GET", srv.URL+view, nil)
	h.Header.Set("Accept", eventStream)
	resp, err := http.DefaultClient.Do(h)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// next returns the next values of a stream.
func next(t *testing.T, from *bufio.Reader) (v liveValues) {
	t.Helper()
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(data), &v); err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
}

// A stream first sends all values, then changed values. The server stops computing values
// when the last viewer leaves.
func TestStream(t *testing.T) {
	t.Parallel()
	r := start(t, nil, Options{})
	srv := httptest.NewServer(r)
	defer srv.Close()
	r.put("mail", "x")
	first := r.stream(srv, "/console/tubes")
	if first.StatusCode != 200 || first.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v", first.StatusCode, first.Header)
	}
	events := bufio.NewReader(first.Body)
	all := next(t, events)
	id := (&page{}).Row("mail") + "ready"
	if all.Texts[id].Text != "1" || all.Shape == "" {
		t.Errorf("%+v", all)
	}
	for r.put("mail", "x"); ; {
		if v, ok := next(t, events).Texts[id]; ok {
			if v.Text != "2" {
				t.Errorf("%+v", v)
			}
			break
		}
	}
	second := bufio.NewReader(r.stream(srv, "/console/tubes").Body)
	if all := next(t, second); all.Texts[id].Text != "2" || all.Shape == "" {
		t.Errorf("the second viewer did not get all values: %+v", all)
	}
	r.Close()
	if _, err := io.Copy(io.Discard, events); err != nil {
		t.Error(err)
	}
	for gone := false; !gone; {
		gone = len(r.Console.live.streams) == 0
	}
}

// The number of streams is limited. Further pages must be reloaded.
func TestManyStreams(t *testing.T) {
	r := start(t, nil, Options{})
	srv := httptest.NewServer(r)
	defer srv.Close()
	defer r.Close()
	for range maxStreams {
		if resp := r.stream(srv, "/console/"); resp.StatusCode != 200 {
			t.Fatal(resp.StatusCode)
		}
	}
	if resp := r.stream(srv, "/console/"); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
}

// watch opens a stream for a page, and closes a channel when the stream ends.
func (r *rig) watch(view string, cookie *http.Cookie) (over chan struct{}) {
	h := httptest.NewRequest("GET", view, nil)
	h.Header.Set("Accept", eventStream)
	h.AddCookie(cookie)
	over = make(chan struct{})
	go func() {
		r.ServeHTTP(httptest.NewRecorder(), h)
		close(over)
	}()
	return over
}

// Several users share a stream. It ends for each user with the user's session, or when
// the rules change.
func TestStreamEndsWithSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, policyOf(t), Options{})
		cookies := []*http.Cookie{r.login(rootToken), r.login(rootToken), r.login(rootToken)}
		var viewers []chan struct{}
		for _, c := range cookies {
			viewers = append(viewers, r.watch("/console/tubes", c))
		}
		want := func(when string, want ...bool) {
			t.Helper()
			time.Sleep(liveStep) // of the test's own clock
			synctest.Wait()
			for i, v := range viewers {
				open := true
				select {
				case _, open = <-v:
				default:
				}
				if open != want[i] {
					t.Errorf("%s: stream %d is open: %v", when, i, open)
				}
			}
		}
		want("at first", true, true, true)
		r.send("POST", "/console/logout", url.Values{}, cookies[1])
		want("when the second has logged out", true, false, true)
		r.send("POST", "/console/logout", url.Values{}, cookies[0])
		want("when the first has logged out", false, false, true)
		if err := r.control.Replace(policyOf(t)); err != nil {
			t.Fatal(err)
		}
		want("with other rules", false, false, false)
	})
}

// The URL of a file contains its sum, so that browsers can cache it forever. Large files
// are compressed.
func TestAssets(t *testing.T) {
	r := start(t, nil, Options{})
	for name, path := range r.assets.urls {
		h := httptest.NewRequest("GET", path, nil)
		h.Header.Set("Accept-Encoding", "gzip")
		w := httptest.NewRecorder()
		r.ServeHTTP(w, h)
		plain := r.page(200, path)
		if len(plain) >= gzipped.Smallest {
			z, err := gzip.NewReader(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			small, _ := io.ReadAll(z)
			if string(small) != plain {
				t.Errorf("%s differs compressed", name)
			}
		}
		if !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %v", name, w.Header())
		}
	}
	r.page(404, "/console/static/0000000000000000/console.js")
}

// The first view of a page transfers few bytes.
func TestWeight(t *testing.T) {
	r := start(t, nil, Options{})
	r.in(func(e *engine.Engine, now int64) {
		for i := range 200 {
			e.PutInto(now, fmt.Appendf(nil, "a-tube-with-a-name-%d", i*7919), engine.Spec{TTR: 9}, nil)
		}
	})
	weight := func(path string) int {
		h := httptest.NewRequest("GET", path, nil)
		h.Header.Set("Accept-Encoding", "gzip")
		w := httptest.NewRecorder()
		r.ServeHTTP(w, h)
		return w.Body.Len()
	}
	assets := 0
	for _, path := range r.assets.urls {
		assets += weight(path)
	}
	for path, most := range map[string]int{"": 16200, "tubes": 23400, "tube/default": 15200} {
		page := weight("/console/" + path)
		t.Logf("%s: %d bytes, and %d of files", path, page, assets)
		if page+assets > most {
			t.Errorf("%s has %d bytes with its files, more than %d", path, page+assets, most)
		}
	}
}

// The jobs of a tube can be exported to a file.
func TestExport(t *testing.T) {
	r := start(t, nil, Options{})
	for _, body := range []string{"one", "two", "three"} {
		r.put("mail", body)
	}
	if text := r.page(200, "/console/tube/mail?state=ready"); !strings.Contains(text, `href="/console/tube/mail/export?state=ready" download>Export ready</a>`) {
		t.Error(text)
	}
	w := r.send("GET", "/console/tube/mail/export?state=ready&q=three", nil)
	if got := w.Header().Get("Content-Disposition"); w.Code != 200 || got != "attachment; filename=mail-ready.ndjson" || strings.Count(w.Body.String(), "\n") != 1 || !strings.Contains(w.Body.String(), "three") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if w := r.send("GET", "/console/tube/none/export", nil); w.Code != 404 || !strings.Contains(w.Body.String(), "<h1") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A search shows its matches, its progress, and the actions for all matches.
func TestSearch(t *testing.T) {
	r := start(t, nil, Options{})
	r.in(func(e *engine.Engine, now int64) {
		for i := range 60_000 {
			body := "hay"
			if i == 59_999 {
				body = "a needle"
			}
			e.PutInto(now, []byte("mail"), engine.Spec{Pri: 9, TTR: 9}, []byte(body))
		}
	})
	text := r.page(200, "/console/search?q=needle+tube:mail+state:ready")
	if !strings.Contains(text, "No matches in 50\u202f") || !strings.Contains(text, " of 60\u202f000 jobs so far<") {
		t.Error(text)
	}
	link := regexp.MustCompile(`href="(/console/search[^"]*cursor[^"]*)"`).FindStringSubmatch(text)
	if link == nil {
		t.Fatal("the page has no link to continue the search")
	}
	text = r.page(200, html.UnescapeString(link[1]))
	for _, want := range []string{"1 found in 60\u202f000 jobs<", "Search complete.", ">60000</a>", `name="all"`, `name="q" value="needle tube:mail state:ready"`, `value="bury-job"`, "/console/tube/mail/export?q=needle&#43;tube%3Amail&#43;state%3Aready", "<span>in mail</span>", "<span>that contain “needle”</span>"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not contain %q: %s", want, text)
		}
	}
}

// The page shows search errors next to the field, which keeps the typed text.
func TestSearchAsTyped(t *testing.T) {
	r := start(t, nil, Options{})
	id := r.put("mail", `{"user":{"id":17}}`)
	for _, typed := range []string{"age>soon user", "/(/", "/a{150}{9}/", `"open`} {
		text := r.page(422, "/console/search?q="+url.QueryEscape(typed))
		if !strings.Contains(text, ` value="`+html.EscapeString(typed)+`"`) && !strings.Contains(text, `value="&#34;open"`) || !strings.Contains(text, `role="alert"`) {
			t.Errorf("%s: %s", typed, text)
		}
	}
	for _, query := range []string{"q=user.id:17", "q=id&in=tube:mail+state:ready", "q=/us.r/"} {
		if text := r.page(200, "/console/search?"+query); !strings.Contains(text, fmt.Sprintf("/console/job/%d", id)) {
			t.Errorf("%s: %s", query, text)
		}
	}
}

// Tubes that need attention can come first. A column that is hidden by default is shown
// when the list is sorted by it.
func TestColumns(t *testing.T) {
	r := start(t, nil, Options{})
	r.put("calm", "x")
	r.put("calm", "x")
	r.put("sick", "x")
	r.talk("watch calm", "watch sick")
	r.in(func(e *engine.Engine, _ int64) { e.BuryJob(3, 0) })
	text := r.page(200, "/console/tubes?sort=-attention")
	if i, k := strings.Index(text, ">sick</a>"), strings.Index(text, ">calm</a>"); i < 0 || k < i || strings.Contains(text, `data-label="Timeouts"`) {
		t.Errorf("sick is at %d, calm at %d: %s", i, k, text)
	}
	if text := r.page(200, "/console/tubes?sort=-timeouts"); strings.Count(text, `data-label="Timeouts"`) != 3 {
		t.Error(text)
	}
}

// A line continues over a few missing samples, and is interrupted by a long gap.
func TestBrokenLine(t *testing.T) {
	points := make([]point, 40)
	for _, i := range []int{0, 1, 12, 30, 31} {
		v := 1.0
		points[i] = &v
	}
	d := drawPath(points, 390, 10, 1)
	if strings.Count(d, "M") != 2 || !strings.HasPrefix(d, "M0.0 ") || !strings.Contains(d, "M300.0 ") {
		t.Error(d)
	}
	if d := drawPath(make([]point, 3), 10, 10, 1); d != "M0 0" {
		t.Error(d)
	}
	alone := make([]point, 40)
	first, last := 1.0, 1.0
	alone[0], alone[39] = &first, &last
	if d := drawPath(alone, 390, 10, 1); d != "M0.0 2.0h0M390.0 2.0h0" {
		t.Errorf("two points that are alone: %s", d)
	}
}

// Browsers send each line break as two bytes.
func TestPutLines(t *testing.T) {
	r := start(t, nil, Options{})
	r.send("POST", "/console/do", url.Values{"do": {"put-job"}, "tube": {"news"}, "body": {"a\r\n\r\nb"}})
	r.in(func(e *engine.Engine, _ int64) {
		job, _ := e.Peek(1)
		if string(job.Body) != "a\n\nb" {
			t.Errorf("%q was put", job.Body)
		}
	})
}

// If sending a search in a form would change it, it is refused, because the action would
// apply to other jobs.
func TestSearchWithLines(t *testing.T) {
	r := start(t, nil, Options{})
	r.put("mail", "a\nb")
	for _, field := range []string{"q=a%0Ab", "q=a%0Db", "q=/x%3D%00"} {
		if text := r.page(400, "/console/confirm?do=clear-tube&tube=mail&state=ready&"+field); !strings.Contains(text, "a line break or a NUL") {
			t.Error(text)
		}
	}
	r.page(200, "/console/confirm?do=clear-tube&tube=mail&state=ready&q=a%20b")
}

// Links reach the pages of tubes whose names are path elements, including their live
// pages.
func TestTubesLikePaths(t *testing.T) {
	r := start(t, nil, Options{})
	segments := map[string]string{".": "~2E", "..": "~2E~2E", "/": "~2F"}
	for name := range segments {
		r.put(name, "x")
	}
	for name, segment := range segments {
		path := "/console/tube/" + segment
		if text := r.page(200, "/console/tubes"); !strings.Contains(text, `href="`+path+`"`) {
			t.Errorf("no link to %s", path)
		}
		if text := r.page(200, path); !strings.Contains(text, ">"+name+"<") {
			t.Errorf("%s does not show %s", path, name)
		}
	}
}

// Two consoles on one host, or that are reached through tunnels from one host, use
// different cookies.
func TestCookieNames(t *testing.T) {
	for host, want := range map[string]string{"localhost:8080": cookiePlain + "-8080", "localhost": cookiePlain, "[::1]:9": cookiePlain + "-9", "a:b;c": cookiePlain} {
		h := httptest.NewRequest("GET", "/console/", nil)
		if h.Host = host; cookieName(h) != want {
			t.Errorf("%s: %s, want %s", host, cookieName(h), want)
		}
	}
}

// If a put fails, the form keeps the typed text and shows the reason.
func TestTypedTextIsKept(t *testing.T) {
	r := start(t, nil, Options{})
	w := r.send("POST", "/console/do", url.Values{"do": {"put-job"}, "tube": {"mail"}, "body": {"my <long> body"}, "priority": {"99999999999"}, "ttr": {"7"}, "base64": {""}})
	for _, want := range []string{"my &lt;long&gt; body", `value="99999999999"`, `value="7"`, "Priority: enter a number from 0 to 4294967295."} {
		if w.Code != 422 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d, without %s: %s", w.Code, want, w.Body)
		}
	}
}
