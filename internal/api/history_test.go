package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// What there is, is as it was at the sample; what was done adds up; what was not looked at
// is missing, also when the ring has gone round.
func TestHistory(t *testing.T) {
	r := start(t, Options{})
	put := func(n int) {
		r.in(func(e *engine.Engine, now int64) {
			for range n {
				e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9}, nil)
			}
		})
	}
	show := func(step, points int, series string) string {
		var h admin.History
		r.want(200, "GET", fmt.Sprintf("/history?step=%d&points=%d", step, points), "", &h)
		text := ""
		for _, v := range h.Series[series] {
			if v == nil {
				text += "- "
			} else {
				text += fmt.Sprint(*v, " ")
			}
		}
		return text
	}
	put(3)
	r.sampleServer(600) // what was before is no rate
	put(2)
	r.sampleServer(601)
	put(4)
	r.sampleServer(603)
	if got := show(1, 5, "ready") + "; " + show(1, 5, "put"); got != "- 3 5 - 9 ; - 0 2 - 4 " {
		t.Error(got)
	}
	put(1)
	r.sampleServer(603 + secondsKept) // in the place of the one before
	if got := show(1, 4, "put"); got != "- - - 1 " {
		t.Error(got)
	}
	if got := show(60, 62, "put"); got[:6] != "- 6 - " || got[len(got)-2:] != "1 " {
		t.Error(got)
	}
}

// The last samples of a tube are in their order; one that is gone has none.
func TestTubeHistory(t *testing.T) {
	r := start(t, Options{})
	r.someTubes(2)
	for i := range tubeSamples + 5 {
		r.in(func(e *engine.Engine, now int64) { e.PutInto(now, []byte("t-1"), engine.Spec{TTR: 9}, nil) })
		r.sampleTubes(t.Context(), int64(tubeStep*i))
	}
	var recent admin.Recent
	r.want(200, "GET", "/tubes/t-1/history", "", &recent)
	if !slices.IsSorted(recent.Ready) || len(recent.Ready) != tubeSamples || recent.Ready[tubeSamples-1] != 2+tubeSamples+5 || recent.Put[9] != 0.1 || recent.PutPerSecond != 0.1 {
		t.Errorf("%+v", recent)
	}
	var page admin.Tubes
	r.want(200, "GET", "/tubes?recent=true", "", &page)
	if got := page.Tubes[2].Recent; got == nil || !slices.Equal(got.Ready, recent.Ready) || got.Put != nil {
		t.Errorf("%+v", got)
	}
	r.sweep("t-1", `{"do":"delete","state":"ready"}`)
	r.sampleTubes(t.Context(), 1_000_000)
	r.want(404, "GET", "/tubes/t-1/history", "", nil)
}

// A tube that has gone and come again since the last sample begins to count from nothing.
func TestTubeHistoryAgain(t *testing.T) {
	h := newHistory()
	th := new(tubeHistory)
	h.tubes["mail"] = th
	for i, s := range []tubeSample{{put: 1<<32 - 10, deleted: 1<<32 - 20}, {put: 10, deleted: 20}, {put: 3, deleted: 3}, {put: 4, deleted: 3}} {
		th.add(int64(i*tubeStep), s)
	}
	r := h.recentOf("mail")
	if want := []float64{0, 2, 0.3, 0.1}; !slices.Equal(r.Put, want) {
		t.Errorf("put: %v, want %v", r.Put, want)
	}
	if want := []float64{0, 4, 0.3, 0}; !slices.Equal(r.Deleted, want) {
		t.Errorf("deleted: %v, want %v", r.Deleted, want)
	}
	if r.PutPerSecond != 24.0/(3*tubeStep) || r.DeletedPerSecond != 43.0/(3*tubeStep) {
		t.Errorf("%v put a second, %v deleted", r.PutPerSecond, r.DeletedPerSecond)
	}
}

// Of more tubes than are remembered those are that matter most, also if they came last.
func TestTubesKept(t *testing.T) {
	r := start(t, Options{})
	put := func(tube string, n int) {
		r.in(func(e *engine.Engine, now int64) {
			for range n {
				e.PutInto(now, []byte(tube), engine.Spec{TTR: 9}, nil)
			}
		})
	}
	for i := range tubesKept {
		put(fmt.Sprint("t-", i), 1)
	}
	r.sampleTubes(t.Context(), 0)
	put("busy", 2)
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

// Record ends with its context, and takes the first samples at once.
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

// Where there are more tubes than have samples, all are looked at once a minute only; a tube that goes makes
// room at once.
func TestManyTubes(t *testing.T) {
	r := start(t, Options{})
	r.in(func(e *engine.Engine, now int64) {
		for i := range tubesKept + 10 {
			e.PutInto(now, fmt.Appendf(nil, "t-%d", i), engine.Spec{TTR: 9}, nil)
		}
	})
	samples := func() (tubes, most int) {
		for _, th := range r.history.tubes {
			most = max(most, len(th.samples))
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
		t.Errorf("%d tubes have samples, and one is gone", n)
	}
	r.sampleTubes(t.Context(), lookStep+2*tubeStep)
	if n, _ := samples(); n != tubesKept || r.history.looked != lookStep+2*tubeStep {
		t.Errorf("%d tubes have samples, and there is room for one; looked at %d", n, r.history.looked)
	}
}

// Lists that may be old share a survey, until something is changed through the API.
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
		t.Errorf("%d jobs, and %d in a list that may be old", before, got)
	}
	if got := matching(0); got != before+1 {
		t.Errorf("%d jobs in a list of now, want %d", got, before+1)
	}
	r.want(201, "POST", "/tubes/t-1/jobs", `{"body":""}`, nil)
	if got := matching(time.Hour); got != before+2 {
		t.Errorf("%d jobs after a change, want %d", got, before+2)
	}
}

// How much has been added is said with the time in which it was.
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
