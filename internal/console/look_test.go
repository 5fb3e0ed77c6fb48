package console

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/admin/api"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// When there is more to look at than the overview has room for, one buried job is not hidden by many tubes without workers.
func TestManyFindings(t *testing.T) {
	r := start(t, nil, Options{})
	for i := range 30 {
		r.put(fmt.Sprint("tenant-", i), "x")
		r.put(fmt.Sprint("tenant-", i), "x")
	}
	r.in(func(e *engine.Engine, now int64) { e.Pause(now, []byte("tenant-1"), 30) })
	html := r.page(200, "/console/")
	for _, want := range []string{`href="/console/tubes?has=unwatched">without workers <span id="k-unwatched" class="strong">30<`, `href="/console/tubes?has=paused">paused <span id="k-paused" class="strong">1<`} {
		if !strings.Contains(html, want) {
			t.Errorf("there is no %s in\n%s", want, html)
		}
	}
	if strings.Contains(html, `id="k-buried"`) {
		t.Error("there is a kind of which there is nothing")
	}
}

// Settings that nobody has set, and refusals that there were none of, take no room.
func TestServerIsShort(t *testing.T) {
	r := startWith(t, nil, Options{}, func(*api.API) []Server { return nil }, func(o *api.Options) {
		o.Facts = func() api.ServerFacts {
			return api.ServerFacts{Settings: []api.Setting{{Name: "port", Value: `"11301"`, From: "command line"}, {Name: "compat", Value: `"1.13"`, From: "default"}}}
		}
	})
	html := r.page(200, "/console/server")
	chosen, others, ok := strings.Cut(html, `<details class="defaults">`)
	if !ok || !strings.Contains(chosen, "11301") || strings.Contains(chosen, "1.13") || !strings.Contains(others, "1.13") || !strings.Contains(html, "Nothing was refused.") {
		t.Error(html)
	}
	r.talk("nonsense")
	if html := r.page(200, "/console/server"); strings.Contains(html, "Nothing was refused.") || !strings.Contains(html, "UNKNOWN_COMMAND") || strings.Contains(html, "OUT_OF_MEMORY") {
		t.Error(html)
	}
}

// What a stream says of a page is what stands in its HTML.
func TestLiveValues(t *testing.T) {
	r := start(t, nil, Options{})
	r.put("mail", "x")
	r.put("news", "<&>")
	for _, path := range []string{"", "tubes", "tube/mail", "job/1", "connections", "activity", "server"} {
		asked, page, err := r.viewOf(httptest.NewRequest("GET", "/console/events?view=/console/"+path, nil))
		if err != nil {
			t.Fatal(err)
		}
		live, err := r.live.values(asked, page)
		if err != nil {
			t.Fatal(err)
		}
		html := r.page(200, "/console/"+path)
		if len(live.Texts) == 0 && path != "activity" && path != "connections" {
			t.Errorf("nothing changes on %q", path)
		}
		for id, v := range live.Texts {
			if want := `id="` + id + `" class="` + v.Class + `"`; !strings.Contains(html, want) {
				t.Errorf("%q has no %s", path, want)
			}
		}
		for id := range live.Lines {
			if !strings.Contains(html, `id="`+id+`" d="`) {
				t.Errorf("%q has no line %s", path, id)
			}
		}
		if !strings.Contains(html, `data-shape="`+live.Shape+`"`) {
			t.Errorf("%q has another shape than %s", path, live.Shape)
		}
	}
}
