package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// asks sends a GET request to the server's API and reports whether the object exists.
func (s *server) asks(path string, into any) bool {
	s.t.Helper()
	r, err := http.Get("http://" + s.admin + "/api/v1" + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return false
	}
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		s.t.Fatal(path, err)
	}
	return true
}

// A jobNow and a tubeNow are the API's views of a job and of a tube.
type jobNow struct {
	Tube, State string
	Priority    uint32
}

type tubeNow struct {
	Jobs  struct{ Ready, Reserved, Delayed, Buried int }
	Pause int
}

// comes waits until a value is the expected one.
func comes[T comparable](t *testing.T, what string, want T, now func() T) {
	t.Helper()
	for deadline := time.Now().Add(patience / 2); ; time.Sleep(20 * time.Millisecond) {
		got := now()
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %+v, want %+v", what, got, want)
		}
	}
}

// all selects all jobs in a state.
var all = []string{"all"}

const selectAll = "document.querySelector('[data-all]').click(), document.querySelector('[name=all]').click()"

// ofAll returns the script that clicks on an action for all jobs in a state.
func ofAll(action string) string {
	return selectAll + ", document.querySelector('.pick [value=" + action + "]').click()"
}

// act clicks on a button of a page, for the selected rows if there are any. It fills in
// fields of the dialog, and waits until the next page reports the result.
func act(t *testing.T, ctx context.Context, s *server, path, action string, selected []string, fields ...string) {
	t.Helper()
	do(t, ctx, visit(s.url(path)))
	until(t, ctx, "location.href == '"+s.url(path)+"' && !document.querySelector('#help').hidden")
	for _, value := range selected {
		if value == all[0] {
			eval[any](t, ctx, selectAll)
			continue
		}
		eval[any](t, ctx, fmt.Sprintf("document.querySelector('[data-rows] input[value=%q]').click()", value))
	}
	if len(selected) > 0 {
		do(t, ctx, mouse("form[data-confirm] button[value="+action+"]"))
	} else {
		do(t, ctx, mouse(`main a[data-dialog][href*="do=`+action+`&"]`))
	}
	until(t, ctx, "document.querySelector('#dialog[open] .bar button')")
	for i := 0; i < len(fields); i += 2 {
		eval[any](t, ctx, fmt.Sprintf("document.querySelector('#dialog [name=%s]').value = %q", fields[i], fields[i+1]))
	}
	do(t, ctx, mouse("#dialog .bar button"))
	until(t, ctx, "document.readyState == 'complete' && document.querySelector('.note') && !document.querySelector('.note.bad')")
}

// Every action has the documented effect.
func TestEveryAction(t *testing.T) {
	s := start(t)
	s.put("mail", "x", 6)
	ctx := browse(t)
	job := func(id int, want jobNow) {
		t.Helper()
		comes(t, fmt.Sprint("job ", id), want, func() (j jobNow) { s.asks(fmt.Sprint("/jobs/", id), &j); return j })
	}
	tube := func(name string, ready, buried, pause int) {
		t.Helper()
		want := tubeNow{Pause: pause}
		want.Jobs.Ready, want.Jobs.Buried = ready, buried
		comes(t, name, want, func() (now tubeNow) { s.asks("/tubes/"+name, &now); return now })
	}
	reserve := func(id int) {
		t.Helper()
		if got := s.say(fmt.Sprint("reserve-job ", id)); !strings.HasPrefix(got, "RESERVED") {
			t.Fatal(got)
		}
		s.replies.ReadString('\n') // reads the body
		job(id, jobNow{"mail", "reserved", 1024})
	}

	act(t, ctx, s, "job/1", "bury-job", nil)
	job(1, jobNow{"mail", "buried", 1024})
	act(t, ctx, s, "job/1", "kick-job", nil)
	job(1, jobNow{"mail", "ready", 1024})
	act(t, ctx, s, "job/2", "change-job", nil, "priority", "7", "delay", "1000")
	job(2, jobNow{"mail", "delayed", 7})
	act(t, ctx, s, "job/2", "move-job", nil, "to", "news")
	job(2, jobNow{"news", "delayed", 7})
	act(t, ctx, s, "job/3", "copy-job", nil, "to", "copies")
	tube("copies", 1, 0, 0)
	act(t, ctx, s, "job/4", "delete-job", nil)
	job(4, jobNow{})
	reserve(5)
	act(t, ctx, s, "job/5", "release-job", nil)
	job(5, jobNow{"mail", "ready", 1024})

	act(t, ctx, s, "tube/mail", "pause-tube", nil, "seconds", "1000")
	tube("mail", 4, 0, 1000)
	act(t, ctx, s, "tube/mail", "resume-tube", nil)
	tube("mail", 4, 0, 0)
	act(t, ctx, s, "tube/mail?state=ready", "bury-job", all, "count", "3")
	tube("mail", 1, 3, 0)
	act(t, ctx, s, "tube/mail?state=buried", "kick-tube", nil)
	tube("mail", 4, 0, 0)
	reserve(5)
	act(t, ctx, s, "tube/mail?state=reserved", "release-job", all)
	tube("mail", 4, 0, 0)
	act(t, ctx, s, "tube/mail?state=ready", "change-job", all, "priority", "9")
	job(6, jobNow{"mail", "ready", 9})
	act(t, ctx, s, "tube/mail?state=ready", "move-job", all, "to", "moved")
	tube("moved", 4, 0, 0)
	act(t, ctx, s, "tube/moved?state=ready", "delete-job", all)
	job(6, jobNow{})

	do(t, ctx, visit(s.url("tube/mail/put")))
	until(t, ctx, "document.querySelector('main form [name=body]')")
	eval[any](t, ctx, "document.querySelector('[name=body]').value = 'by hand'")
	eval[any](t, ctx, "document.querySelector('main form button').click()")
	until(t, ctx, "!!document.querySelector('.note')")
	tube("mail", 1, 0, 0)

	act(t, ctx, s, "server", "drain", nil)
	if got := s.say("put 0 0 60", "y"); got != "DRAINING" {
		t.Error(got)
	}
	act(t, ctx, s, "server", "undrain", nil)
	s.put("mail", "y", 1)
	tube("mail", 2, 0, 0)

	other, err := net.Dial("tcp", s.port)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	fmt.Fprint(other, "watch closed-soon\r\n")
	var found struct{ Connections []struct{ ID int } }
	comes(t, "connections", 1, func() int { s.asks("/connections?tube=closed-soon", &found); return len(found.Connections) })
	act(t, ctx, s, "connections", "close-connection", []string{fmt.Sprint(found.Connections[0].ID)})
	comes(t, "connections", 0, func() int { s.asks("/connections?tube=closed-soon", &found); return len(found.Connections) })
}

// Actions on the page of tubes apply to all selected tubes.
func TestSelectedTubes(t *testing.T) {
	s := start(t)
	for _, tube := range []string{"mail", "news", "other"} {
		s.put(tube, `{"for":"`+tube+`"}`, 2)
	}
	ctx := browse(t)
	state := func(name string) (now tubeNow) { s.asks("/tubes/"+name, &now); return now }
	both, pauses := []string{"mail", "news"}, func() [3]int { return [3]int{state("mail").Pause, state("news").Pause, state("other").Pause} }
	act(t, ctx, s, "tubes", "pause-tube", both, "seconds", "1000")
	comes(t, "pauses", [3]int{1000, 1000, 0}, pauses)
	act(t, ctx, s, "tubes", "resume-tube", both)
	comes(t, "pauses", [3]int{}, pauses)
	act(t, ctx, s, "tube/mail?state=ready", "bury-job", []string{"1", "2"})
	act(t, ctx, s, "tubes", "kick-tube", both)
	comes(t, "ready", 2, func() int { return state("mail").Jobs.Ready })

	act(t, ctx, s, "tubes", "clear-tube", both, "state", "ready")
	comes(t, "ready", [3]int{0, 0, 2}, func() [3]int {
		return [3]int{state("mail").Jobs.Ready, state("news").Jobs.Ready, state("other").Jobs.Ready}
	})
}

// Special tube names, names of identities and user agents do not break any page, and
// links lead to the right pages.
func TestHostileNames(t *testing.T) {
	const hostile = `"><img src=x onerror="window.bad=1"><script>window.bad=1</script>`
	s := start(t, secured(t, hostile, false)...)
	ctx := browse(t, chromedp.UserAgent(hostile))
	do(t, ctx, visit(s.url("login")), chromedp.SendKeys("input[name=token]", testToken+"\r"))
	until(t, ctx, "location.pathname == '/console/' && document.querySelector('.at').textContent.includes('onerror')")
	for _, name := range []string{"/../../login", "a;b$(c)_d+e.f/g", "console/server"} {
		do(t, ctx, visit(s.url("tube/"+url.PathEscape(name)+"/put")))
		until(t, ctx, "document.querySelector('main form [name=body]')")
		eval[any](t, ctx, fmt.Sprintf("document.querySelector('[name=body]').value = %q", hostile))
		eval[any](t, ctx, "document.querySelector('main form button').click()")
		until(t, ctx, "!!document.querySelector('.note')")
		do(t, ctx, visit(s.url("tubes")))
		until(t, ctx, fmt.Sprintf("[...document.querySelectorAll('a.tube')].some(a => a.textContent == %q)", name))
		eval[any](t, ctx, fmt.Sprintf("[...document.querySelectorAll('a.tube')].find(a => a.textContent == %q).click()", name))
		until(t, ctx, fmt.Sprintf("document.querySelector('h1.tube')?.textContent == %q && !document.querySelector('#help').hidden", name))
		act(t, ctx, s, "tube/"+url.PathEscape(name)+"?state=ready", "bury-job", all)
	}
	for _, path := range []string{"", "tubes", "connections", "activity", "server", "search?q=img", "job/1", "nothing/" + url.PathEscape(hostile), "tubes?q=" + url.QueryEscape(hostile), "tube/" + url.PathEscape(hostile)} {
		do(t, ctx, visit(s.url(path)))
		until(t, ctx, "!!document.querySelector('main') && !document.querySelector('#help').hidden")
		if eval[bool](t, ctx, "!!window.bad || document.querySelectorAll('main img, main script, header img, header script').length > 0") {
			t.Errorf("%s runs or shows hostile input", path)
		}
	}
}
