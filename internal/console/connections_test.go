package console

import (
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

var connectionLink = regexp.MustCompile(`<td class="l name"><a class="tube" title="\d+" href="/console/connection/(\d+)"`)

var jobLink = regexp.MustCompile(`<td class="l name"><a class="tube" title="\d+" href="/console/job/(\d+)"`)

func connectionsOf(page string) string {
	var ids []string
	for _, m := range connectionLink.FindAllStringSubmatch(page, -1) {
		ids = append(ids, m[1])
	}
	return strings.Join(ids, " ")
}

// Connections can be sorted by any column. Each column head links to the list sorted by
// that column, and keeps the filter. Screen readers announce the sort order.
func TestConnectionOrder(t *testing.T) {
	r := start(t, nil, Options{})
	r.talk("use news", "watch a", "watch b")
	r.talk("use audit", "watch a")
	r.talk("use mail")
	text := r.page(200, "/console/connections?tube=default")
	if got := connectionsOf(text); got != "1 2 3" || !strings.Contains(text, `>3 connections<`) || !strings.Contains(text, `aria-sort="ascending"><a href="/console/connections?sort=-id&amp;tube=default">Connection<`) {
		t.Fatalf("%s first, %s", got, text)
	}
	links := headLinks(text)
	if len(links) != len(clientColumns) {
		t.Fatalf("%d links for %d columns", len(links), len(clientColumns))
	}
	for i, link := range links {
		sorted := r.page(200, link)
		if !strings.Contains(link, "tube=default") || strings.Count(sorted, "aria-sort=") != 1 {
			t.Errorf("%s: %s", link, sorted)
		}
		again := headLinks(sorted)[i]
		back := r.page(200, again)
		if connectionsOf(back) == "" || strings.Contains(sorted, `aria-sort="ascending"`) == strings.Contains(back, `aria-sort="ascending"`) {
			t.Errorf("%s does not reverse the order of %s: %s", again, link, back)
		}
	}
	for _, test := range []struct{ sort, want string }{{"using", "2 3 1"}, {"-watching", "1 2 3"}, {"watching", "3 2 1"}, {"-id", "3 2 1"}} {
		text := r.page(200, "/console/connections?sort="+test.sort)
		if got := connectionsOf(text); got != test.want || !strings.Contains(text, `<input type="hidden" name="sort" value="`+test.sort+`">`) {
			t.Errorf("%s: %s, want %s", test.sort, got, test.want)
		}
	}
	if text := r.page(400, "/console/connections?sort=nonsense"); !strings.Contains(text, "want one of") {
		t.Error(text)
	}
	if text := r.page(200, "/console/tube/a"); strings.Count(text, ">Waiting for<") != 1 || strings.Contains(text, `<a href="/console/connections?sort=`) {
		t.Error("the connections of a tube can be sorted, or have no heads")
	}
}

// If there are many connections, the server reads all of them only for a sorted list.
func TestManyConnections(t *testing.T) {
	r := start(t, nil, Options{})
	r.talk("use mail")
	r.in(func(e *engine.Engine, _ int64) {
		for range sortedAlone {
			e.Open(nil)
		}
	})
	if text := r.page(200, "/console/connections"); connectionsOf(text) != "1" || strings.Contains(text, "aria-sort") || !strings.Contains(text, ">unsorted") {
		t.Error(text)
	}
	if text := r.page(200, "/console/connections?sort=id"); connectionsOf(text) != "1" || !strings.Contains(text, "aria-sort") || !strings.Contains(text, `name="sort" value="id"`) {
		t.Error(text)
	}
}

// Connections can be sorted by the job that they have held longest.
func TestHeldJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil, Options{})
		r.in(func(e *engine.Engine, now int64) {
			for range 3 {
				e.PutInto(now, []byte("mail"), engine.Spec{TTR: 10_000}, []byte("x"))
			}
		})
		r.talk("watch mail", "use idle")
		r.talk("watch mail", "reserve-job 1")
		time.Sleep(2 * time.Hour)
		r.talk("watch mail", "reserve-job 2", "use other", "reserve-job 3")
		text := r.page(200, "/console/connections?only=holding&sort=-held")
		if got := connectionsOf(text); got != "2 3" {
			t.Errorf("%s: %s", got, text)
		}
		for _, want := range []string{`<a class="tube" href="/console/job/1">job 1</a>`, ">job 2 and 1 more<", ">2\u202fh<"} {
			if !strings.Contains(text, want) {
				t.Errorf("without %s: %s", want, text)
			}
		}
		text = r.page(200, "/console/working")
		if jobs := jobLink.FindAllStringSubmatch(text, -1); len(jobs) != 3 || jobs[0][1] != "1" || !strings.Contains(text, `<a class="tube" href="/console/connection/2">mem</a>`) || !strings.Contains(text, ">2\u202fh<") {
			t.Error(jobs, text)
		}
		if text := r.page(200, "/console/working?tube=mail*"); len(jobLink.FindAllString(text, -1)) != 3 {
			t.Error(text)
		}
	})
}
