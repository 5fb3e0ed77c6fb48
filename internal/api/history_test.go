package api

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/history"
	"github.com/beanpole-mq/beanpole/internal/test/memfs"
)

func (r *rig) series(path, series string) string {
	r.t.Helper()
	var h admin.History
	r.want(200, "GET", path, "", &h)
	text := ""
	for _, v := range h.Series[series] {
		if v == nil {
			text += "- "
		} else {
			text += strconv.FormatFloat(*v, 'g', 3, 64) + " "
		}
	}
	return text
}

// A sample of a level is the value in its second; a sample of an increase is the sum
// since the previous sample. Seconds before the first sample, or before a gap, are null.
func TestHistory(t *testing.T) {
	r := start(t, Options{})
	r.someJobs("mail", 3)
	r.sampleServer(600) // earlier puts do not count as an increase
	r.someJobs("mail", 2)
	r.sampleServer(601)
	r.someJobs("mail", 4)
	r.sampleServer(602)
	if got := r.series("/history?points=4", "ready") + "; " + r.series("/history?points=4", "put"); got != "- 3 5 9 ; - 0 2 4 " {
		t.Error(got)
	}
	for i := range secondsKept {
		r.someJobs("mail", 1)
		r.sampleServer(603 + int64(i)) // drops the earlier samples
	}
	if got := r.series("/history", "put"); got != strings.Repeat("1 ", secondsKept) {
		t.Error(got)
	}
	r.sampleServer(5000) // the machine slept
	r.sampleServer(5001)
	if got := r.series("/history?points=3", "put"); got != "- 0 0 " {
		t.Errorf("after a gap: %s", got)
	}
}

func (r *rig) someJobs(tube string, n int) {
	r.in(func(e *engine.Engine, now int64) {
		for range n {
			e.PutInto(now, []byte(tube), engine.Spec{TTR: 9}, nil)
		}
	})
}

// The minute and hour points contain the events and durations of the server and of each
// tube. A new server with the same directory continues them. A tube keeps its history
// after its removal.
func TestMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := memfs.New()
		opened := func() *history.Store {
			return history.New(history.Options{FS: fsys, Dir: "/history", Limit: 1 << 20, Log: slog.New(slog.DiscardHandler)})
		}
		record := func(r *rig) (end func()) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { r.Record(ctx); close(ended) }()
			synctest.Wait()
			return func() { cancel(); <-ended }
		}
		shows := func(r *rig, path string, want map[string]string) {
			t.Helper()
			for series, text := range want {
				if got := r.series(path, series); got != text {
					t.Errorf("%s, %s: %s, want %s", path, series, got, text)
				}
			}
		}
		r := start(t, Options{History: opened()})
		end := record(r)
		r.someJobs("mail", 2)
		time.Sleep(65 * time.Second)
		r.someJobs("mail", 3)
		nc := r.talk("watch mail", "reserve-with-timeout 0", "", "reserve-with-timeout 0", "", "reserve-with-timeout 0", "")
		time.Sleep(2 * time.Second)
		io.WriteString(nc, "delete 1\r\nbury 2 0\r\nrelease 3 0 0\r\n")
		time.Sleep(55 * time.Second)
		want := map[string]string{"put": "2 3 ", "done": "0 1 ", "failed": "0 1 ", "retried": "0 1 ", "reserves": "0 3 ", "ready": "2 3 ", "buried": "0 1 ", "wait_p50": "- 45.3 "}
		shows(r, "/tubes/mail/history?step=60&points=2", want)
		shows(r, "/history?step=60&points=2", want)
		shows(r, "/history?step=3600&points=1", map[string]string{"put": "- "})
		end()

		r = start(t, Options{History: opened()})
		end = record(r)
		time.Sleep(time.Hour)
		shows(r, "/tubes/mail/history?step=3600&points=2", map[string]string{"put": "- 5 ", "failed": "- 1 ", "ready": "- 0 "})
		shows(r, "/history?step=3600&points=1", map[string]string{"put": "5 ", "wait_p95": "68.7 "})
		shows(r, "/tubes/mail/history?step=60&points=64", map[string]string{"put": "- - 2 3 " + strings.Repeat("0 ", 60)})
		r.want(404, "GET", "/tubes/mail", "", nil)
		r.want(404, "GET", "/tubes/news/history?step=60", "", nil)
		end()
	})
}

// A member copies the leader's points and changes, and continues them when it becomes the
// leader.
func TestHistoryOfLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rigs [2]*rig
		var leader atomic.Int64
		for i := range rigs {
			rigs[i] = start(t, Options{Leader: func() (http.RoundTripper, error) {
				if leads := int(leader.Load()); leads != i {
					return &through{leader: rigs[leads].FromMembers()}, nil
				}
				return nil, nil
			}, IdentifyByName: func(string, netip.Addr) (*access.Identity, bool) { return rightsPolicy(t)["manage"], true }})
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, r := range rigs {
			go r.Record(ctx)
		}
		time.Sleep(15 * time.Second)
		for i, r := range rigs {
			r.someJobs("mail", 1+i)
			leader.Store(int64(i))
			r.want(201, "POST", "/tubes/mail/jobs", `{"body":""}`, nil)
			time.Sleep(2 * time.Minute)
		}
		for i, r := range rigs {
			points, _ := r.history.store.Series("mail", time.Minute, time.Now().Add(-time.Minute), 4)
			put := ""
			for _, p := range points {
				if p != nil {
					put += fmt.Sprint(p[history.Put], " ")
				}
			}
			page, err := r.changes.List(&admin.ListChanges{Limit: 9})
			if put != "2 0 3 0 " || err != nil || len(page.Changes) != 2 {
				t.Errorf("member %d: %s, %v, %+v", i, put, err, page)
			}
		}
	})
}

// The samples of a tube are in order. A decreasing counter belongs to a new tube with the
// same name.
func TestTubeSamples(t *testing.T) {
	r := start(t, Options{})
	r.someTubes(2)
	for i := range tubeSamples + 5 {
		r.someJobs("t-1", 1)
		r.sampleTubes(t.Context(), int64(tubeStep*i))
	}
	if got, want := r.series("/tubes/t-1/history", "put"), strings.Repeat("1 ", tubeSamples-1); got != want {
		t.Error(got)
	}
	var page admin.Tubes
	r.want(200, "GET", "/tubes?recent=true", "", &page)
	if got := page.Tubes[2].Recent; got == nil || !slices.IsSorted(got.Ready) || len(got.Ready) != tubeSamples || got.Ready[tubeSamples-1] != 2+tubeSamples+5 || got.PutPerSecond != 0.1 {
		t.Errorf("%+v", got)
	}
	r.sweep("t-1", `{"do":"delete","state":"ready"}`)
	r.sampleTubes(t.Context(), 1_000_000)
	r.want(404, "GET", "/tubes/t-1/history", "", nil)

	th := new(samples)
	r.history.tubes["mail"] = th
	for i, v := range []history.Values{{history.Put: 10, history.Done: 20}, {history.Put: 30, history.Done: 60}, {history.Put: 3, history.Done: 3}, {history.Put: 4, history.Done: 3}} {
		th.add(int64(i*tubeStep), &v, tubeSamples)
	}
	if got := r.series("/tubes/mail/history?points=4", "put") + r.series("/tubes/mail/history?points=4", "done"); got != "10 20 3 1 20 40 3 0 " {
		t.Error(got)
	}
	if got := r.history.recent("mail"); got.PutPerSecond != 24.0/(3*tubeStep) || got.DeletedPerSecond != 43.0/(3*tubeStep) {
		t.Errorf("%+v", got)
	}
}

// If there are more tubes than the limit, the most important ones are sampled, even if
// they are the newest.
func TestTubesKept(t *testing.T) {
	r := start(t, Options{})
	for i := range tubesKept {
		r.someJobs(fmt.Sprint("t-", i), 1)
	}
	r.sampleTubes(t.Context(), 0)
	r.someJobs("busy", 2)
	r.sampleTubes(t.Context(), tubeStep)
	if got := r.want(200, "GET", "/tubes/busy/history", "", nil); !strings.Contains(got, `"ready":[]`) {
		t.Error(got)
	}
	r.sampleTubes(t.Context(), lookStep)
	if got := r.want(200, "GET", "/tubes/busy/history", "", nil); strings.Contains(got, `"ready":[]`) {
		t.Error(got)
	}
	if n := len(r.history.tubes); n != tubesKept || r.history.tubes["default"] != nil {
		t.Errorf("%d tubes have samples", n)
	}
}

// Record takes the first samples at once, and returns when its context ends.
func TestRecord(t *testing.T) {
	r := start(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Record(ctx)
	var h admin.History
	r.want(200, "GET", "/history?points=1", "", &h)
	if h.Series["ready"][0] == nil {
		t.Errorf("%+v", h)
	}
}

// If there are more tubes than samples, the server reads all tubes only once a minute. A
// removed tube is replaced at once.
func TestManyTubes(t *testing.T) {
	r := start(t, Options{})
	r.in(func(e *engine.Engine, now int64) {
		for i := range tubesKept + 10 {
			e.PutInto(now, fmt.Appendf(nil, "t-%d", i), engine.Spec{TTR: 9}, nil)
		}
	})
	samples := func() (tubes, most int) {
		for _, th := range r.history.tubes {
			most = max(most, len(th.kept))
		}
		return len(r.history.tubes), most
	}
	for i := range 3 {
		r.sampleTubes(t.Context(), int64(i*tubeStep))
	}
	if n, most := samples(); n != tubesKept || most != 3 || r.history.looked != 0 {
		t.Errorf("%d tubes with up to %d samples, looked at %d", n, most, r.history.looked)
	}
	r.sampleTubes(t.Context(), lookStep)
	if r.history.looked != lookStep {
		t.Errorf("looked at %d", r.history.looked)
	}
	for name := range r.history.tubes {
		if name != "default" {
			r.sweep(name, `{"do":"delete","state":"ready"}`)
			break
		}
	}
	r.sampleTubes(t.Context(), lookStep+tubeStep)
	if n, _ := samples(); n != tubesKept-1 {
		t.Errorf("%d tubes have samples after one tube was removed", n)
	}
	r.sampleTubes(t.Context(), lookStep+2*tubeStep)
	if n, _ := samples(); n != tubesKept || r.history.looked != lookStep+2*tubeStep {
		t.Errorf("%d tubes have samples although one place is free; read %d tubes", n, r.history.looked)
	}
}

// Lists that accept old data share a survey, until a change through the API.
func TestSharedSurvey(t *testing.T) {
	r := start(t, Options{})
	r.someTubes(2)
	matching := func(age time.Duration) uint64 {
		open, _ := access.New(access.Config{})
		page, err := r.Open(access.Caller{Identity: open.Nobody(), MaxAge: age}, "").ListTubes(t.Context(), &admin.ListTubes{Sort: "-ready"})
		if err != nil {
			t.Fatal(err)
		}
		return page.Jobs.Ready
	}
	before := matching(time.Hour)
	r.in(func(e *engine.Engine, now int64) { e.PutInto(now, []byte("t-1"), engine.Spec{TTR: 9}, nil) })
	if got := matching(time.Hour); got != before {
		t.Errorf("%d jobs, and %d in a list that can be old", before, got)
	}
	if got := matching(0); got != before+1 {
		t.Errorf("%d jobs in a list of now, want %d", got, before+1)
	}
	r.want(201, "POST", "/tubes/t-1/jobs", `{"body":""}`, nil)
	if got := matching(time.Hour); got != before+2 {
		t.Errorf("%d jobs after a change, want %d", got, before+2)
	}
}

// Growth is reported with its time span.
func TestGrowth(t *testing.T) {
	r := start(t, Options{})
	bury := func() {
		r.in(func(e *engine.Engine, now int64) {
			id, _ := e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9}, nil)
			e.BuryJob(id, 0)
		})
	}
	bury()
	for i, want := range []struct{ more, over int64 }{0: {}, 1: {1, 10}, 2: {2, 20}, 10: {10, 100}, 60: {60, 600}, 61: {60, 600}, 70: {60, 600}} {
		r.sampleTubes(t.Context(), int64(tubeStep*i))
		if i < 3 || want.more > 0 {
			var found admin.Attention
			r.want(200, "GET", "/attention", "", &found)
			if got := found.Findings[0]; got.Kind != "buried" || got.More != want.more || got.Over != want.over {
				t.Errorf("after %d s: %+v", i*tubeStep, got)
			}
		}
		bury()
	}
}
