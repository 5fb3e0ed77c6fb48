package api

import (
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server"

	"github.com/beanpole-mq/beanpole/internal/query"
)

// All long requests together execute one turn per yieldPause.
func TestTurnsOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t, Options{})
		var all sync.WaitGroup
		var turns []time.Time
		for range 3 {
			r := request{api: a.API, op: operations()[0], ctx: t.Context(), caller: access.Caller{Identity: new(access.Identity)}}
			left := 4
			all.Go(func() {
				err := r.turns(func(*engine.Engine, int64) (bool, error) {
					turns = append(turns, time.Now())
					left--
					return left > 0, nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		gaps := 0
		for i := range turns[1:] {
			if turns[i+1].Sub(turns[i]) >= yieldPause {
				gaps++
			}
		}
		if len(turns) != 12 || gaps < 9 { // no pause follows the last turn of a request
			t.Errorf("%d breaths between %d turns", gaps, len(turns))
		}
	})
}

// A slowLog has a disk whose syncs end on request.
type slowLog struct{ may chan struct{} }

func (slowLog) Append([]engine.Change) error { return nil }
func (slowLog) Flush() (bool, error)         { return false, nil }
func (slowLog) Housekeep(int64) int64        { return engine.Never }
func (slowLog) Close() error                 { return nil }
func (l slowLog) Sync() error                { <-l.may; return nil }

// A request that waits for a slow disk does not delay others: all share its syncs.
func TestTurnsOnSlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := slowLog{make(chan struct{})}
		a := startWith(t, Options{}, server.Options{}, engine.Options{}, broker.Options{Log: log})
		var all sync.WaitGroup
		ran := 0
		for range 3 {
			r := request{api: a.API, op: operations()[0], ctx: t.Context(), caller: access.Caller{Identity: new(access.Identity)}}
			all.Go(func() {
				r.turns(func(*engine.Engine, int64) (bool, error) {
					ran++
					return false, nil
				})
			})
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if ran != 3 {
			t.Errorf("%d of 3 have run while the disk is slow", ran)
		}
		close(log.may)
		all.Wait()
	})
}

// After a step that panics, other requests get their turns.
func TestTurnThatPanics(t *testing.T) {
	a := newThrottle()
	turn := func(f func(*engine.Engine, int64) error) error { return f(nil, 0) }
	once := func() bool { return true }
	func() {
		defer func() { recover() }()
		a.turns(t.Context(), turn, func(*engine.Engine, int64) (bool, error) { panic("a bug") }, once)
	}()
	if len(a.inTurns) > 0 {
		t.Error("the gate is not free")
	}
}

// A stalled client does not read until it is released.
type stalled struct {
	*httptest.ResponseRecorder
	may chan struct{}
}

func (s stalled) Write(p []byte) (int, error) {
	<-s.may
	return s.ResponseRecorder.Write(p)
}

// Unread exports block other exports only briefly. A client has one export at a time, so
// that it cannot keep other clients from theirs. Further requests get an error with a
// time to retry.
func TestExportsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{})
		r.putAll("mail", "a")
		may := make(chan struct{})
		var all sync.WaitGroup
		ask := func(client, path string, may chan struct{}) *httptest.ResponseRecorder {
			w, h := httptest.NewRecorder(), newRequest("GET", path, "")
			h.RemoteAddr = client + ":1"
			r.ServeHTTP(stalled{w, may}, h)
			return w
		}
		reads := make(chan struct{})
		close(reads)
		all.Go(func() { ask("10.0.0.1", "/export", may) })
		synctest.Wait()
		if w := ask("10.0.0.1", "/export", reads); w.Code != 503 {
			t.Errorf("a second export of a client: %d %s", w.Code, w.Body)
		}
		all.Go(func() { ask("10.0.0.2", "/export", may) })
		synctest.Wait()
		if w := ask("10.0.0.3", "/tubes/mail/export", reads); w.Code != 503 || w.Header().Get("Retry-After") != "1" {
			t.Errorf("a third export: %d %s", w.Code, w.Body)
		}
		if w := ask("10.0.0.1", "/search?q=a", reads); w.Code != 200 {
			t.Errorf("a search beside: %d %s", w.Code, w.Body)
		}
		close(may)
		all.Wait()
		if w := ask("10.0.0.3", "/tubes/mail/export", reads); w.Code != 200 || !strings.Contains(w.Body.String(), `"body":"a"`) {
			t.Errorf("an export after them: %d %s", w.Code, w.Body)
		}
	})
}

// Two clients at a time can send a large request or a request of unknown size, because
// the server buffers it. An import becomes large with its first large line. A request that
// arrives too slowly fails.
func TestLargeRequestsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startWith(t, Options{}, server.Options{MaxJobSize: maxTaskBytes}, engine.Options{}, broker.Options{})
		send := func(path, client string, length int64, body io.Reader) *httptest.ResponseRecorder {
			w, h := httptest.NewRecorder(), newRequest("POST", "/tubes/mail/"+path, "{}")
			h.RemoteAddr, h.ContentLength, h.Body = client+":1", length, io.NopCloser(body)
			if path == "import" {
				h.Header.Set("Content-Type", ndjson)
			}
			r.ServeHTTP(w, h)
			return w
		}
		put := func(client string, length int64, body io.Reader) int { return send("jobs", client, length, body).Code }
		const job = `{"body":"a"}`
		first, ends := io.Pipe()
		second, endsToo := io.Pipe()
		var all sync.WaitGroup
		all.Go(func() { put("10.0.0.1", maxTaskBytes+1, first) })
		all.Go(func() {
			if code := put("10.0.0.2", -1, second); code != 408 {
				t.Errorf("a slow request: %d", code)
			}
			second.Close()
		})
		synctest.Wait()
		for length, want := range map[int64]int{int64(len(job)): 201, -1: 503, maxTaskBytes + 1: 503} {
			if code := put("10.0.0.3", length, strings.NewReader(job)); code != want {
				t.Errorf("a third put, of %d bytes: %d, want %d", length, code, want)
			}
		}
		large := `{"body":"` + strings.Repeat("a", maxTaskBytes) + `"}`
		for lines, want := range map[string]string{job + "\n" + job: `"imported":2`, job + "\n" + large: "line 2: too many"} {
			if w := send("import", "10.0.0.3", -1, strings.NewReader(lines)); !strings.Contains(w.Body.String(), want) {
				t.Errorf("an import of %d bytes: %s, want %s", len(lines), w.Body, want)
			}
		}
		ends.Close()
		for text := strings.Repeat(" ", 1<<10); ; time.Sleep(time.Second) {
			if _, err := io.WriteString(endsToo, text); err != nil {
				break
			}
		}
		all.Wait()
		if code := put("10.0.0.3", -1, strings.NewReader(job)); code != 201 {
			t.Errorf("a put after them: %d", code)
		}
	})
}

// A page of a search ends after a bounded time, with at least one job.
func TestSearchEndsInTime(t *testing.T) {
	var page admin.Found
	rd := reading{ctx: t.Context(), gate: make(gate, 1), spent: timePerSearch}
	r := request{caller: access.Caller{Identity: new(access.Identity)}}
	more := r.fill(&page, new(jobScan), &rd, &search{query: new(query.Query)}, 10)(make([]scannedJob, 3))
	if more || page.Looked != 1 || page.Next == "" {
		t.Errorf("%+v", page)
	}
}

// A search in bodies pauses for as long as it has read, even in the middle of a body, and
// stops when the client disconnects.
func TestReadingRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		rd := &reading{ctx: ctx, gate: make(gate, 1)}
		if !rd.goOn() {
			t.Fatal("the gate is free, but the reading must wait")
		}
		time.Sleep(2 * maxBurst)
		since := time.Now()
		if !rd.goOn() || time.Since(since) != 2*maxBurst || rd.spent != 2*maxBurst {
			t.Errorf("a rest of %v after %v", time.Since(since), rd.spent)
		}
		cancel()
		body := runes{body: make([]byte, searchedBytes), reading: rd}
		var err error
		for n := 0; err == nil; n++ {
			if _, _, err = body.ReadRune(); n > stepsAtOnce/largestProgram {
				t.Fatal("the reading continues after the client disconnected")
			}
		}
		rd.end()
	})
}

// Large bodies match like small ones. An expression that takes too long per byte is
// refused.
func TestRegexpOfLargeBodies(t *testing.T) {
	large := strings.Repeat("x", 1<<16)
	for _, test := range []struct {
		expression, body string
		want             bool
	}{
		{"(x?){30}Y", large, false},
		{"(x?){30}Y$", large + "Y", true},
		{"^x+y", large + "y", true},
		{"(?i)Ä\\.", large + " ä.", true},
		{"^abc$", large + "abc", false},
		{"abc", large + "abc" + large, true},
		{"needle .*", large, false},
		{"\\x{fffd}", large + "\xff", true},
		{"(x?){40}Y$", strings.Repeat(large, 3) + "Y", false}, // takes too long
		{"x{3}Y$", strings.Repeat(large, 3) + "Y", true},
	} {
		match, err := regexpMatch(test.expression, new(int))
		if err != nil {
			t.Fatal(err)
		}
		if got := match([]byte(test.body), &reading{ctx: t.Context(), gate: make(gate, 1)}); got != test.want {
			t.Errorf("%s: %v", test.expression, got)
		}
	}
	r := start(t, Options{})
	var p problem
	r.want(400, "GET", "/search?q=/(x%3F){500}Y/", "", &p)
	if want := "regexp: the query has "; !strings.HasPrefix(p.Detail, want) {
		t.Error(p.Detail)
	}
	r.want(400, "GET", "/search?q=/(x%3F){49}Y/+/(x%3F){48}Y/+/(x%3F){47}Y/", "", &p) // alone, each is small enough
	r.want(202, "POST", "/tubes/default/tasks", `{"do":"delete","state":"ready","q":"/x{3}/"}`, nil)
	r.want(400, "POST", "/tubes/default/tasks", `{"do":"delete","state":"ready","q":"/(x?){500}Y/"}`, nil)
}
