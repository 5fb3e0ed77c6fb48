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

// asks asks the API of a server for something, and reports whether there is one.
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

// A jobNow and a tubeNow are what the API tells of a job and of a tube.
type jobNow struct {
	Tube, State string
	Priority    uint32
}

type tubeNow struct {
	Jobs  struct{ Ready, Reserved, Delayed, Buried int }
	Pause int
}

// comes waits until something is as it should be.
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

// act goes through the question before an action, with some fields filled in, and waits until the next page says what was done.
func act(t *testing.T, ctx context.Context, s *server, query string, fields ...string) {
	t.Helper()
	do(t, ctx, chromedp.Navigate(s.url("confirm?"+query)))
	until(t, ctx, "document.querySelector('.confirm .bar button')") // the end of the page before may be taken for that of this one
	for i := 0; i < len(fields); i += 2 {
		eval[any](t, ctx, fmt.Sprintf("document.querySelector('.confirm [name=%s]').value = %q", fields[i], fields[i+1]))
	}
	eval[any](t, ctx, "document.querySelector('.confirm .bar button').click()")
	until(t, ctx, "document.readyState == 'complete' && document.querySelector('.note') && !document.querySelector('.note.bad')")
}

// Every action does what it says.
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
		s.replies.ReadString('\n') // its body
		job(id, jobNow{"mail", "reserved", 1024})
	}

	act(t, ctx, s, "do=bury-job&job=1")
	job(1, jobNow{"mail", "buried", 1024})
	act(t, ctx, s, "do=kick-job&job=1")
	job(1, jobNow{"mail", "ready", 1024})
	act(t, ctx, s, "do=change-job&job=2", "priority", "7", "delay", "1000")
	job(2, jobNow{"mail", "delayed", 7})
	act(t, ctx, s, "do=move-job&job=2", "to", "news")
	job(2, jobNow{"news", "delayed", 7})
	act(t, ctx, s, "do=copy-job&job=3", "to", "copies")
	tube("copies", 1, 0, 0)
	act(t, ctx, s, "do=delete-job&job=4")
	job(4, jobNow{})
	reserve(5)
	act(t, ctx, s, "do=release-job&job=5")
	job(5, jobNow{"mail", "ready", 1024})

	act(t, ctx, s, "do=pause-tube&tube=mail", "seconds", "1000")
	tube("mail", 4, 0, 1000)
	act(t, ctx, s, "do=resume-tube&tube=mail")
	tube("mail", 4, 0, 0)
	act(t, ctx, s, "do=bury-jobs&tube=mail&state=ready", "count", "3")
	tube("mail", 1, 3, 0)
	act(t, ctx, s, "do=kick-tube&tube=mail&state=buried")
	tube("mail", 4, 0, 0)
	reserve(5)
	act(t, ctx, s, "do=release-jobs&tube=mail&state=reserved")
	tube("mail", 4, 0, 0)
	act(t, ctx, s, "do=change-jobs&tube=mail&state=ready", "priority", "9")
	job(6, jobNow{"mail", "ready", 9})
	act(t, ctx, s, "do=move-jobs&tube=mail&state=ready", "to", "moved")
	tube("moved", 4, 0, 0)
	act(t, ctx, s, "do=clear-tube&tube=moved&state=ready")
	job(6, jobNow{})

	do(t, ctx, chromedp.Navigate(s.url("tube/mail/put")))
	until(t, ctx, "document.querySelector('main form [name=body]')")
	eval[any](t, ctx, "document.querySelector('[name=body]').value = 'by hand'")
	eval[any](t, ctx, "document.querySelector('main form button').click()")
	until(t, ctx, "!!document.querySelector('.note')")
	tube("mail", 1, 0, 0)

	act(t, ctx, s, "do=drain")
	if got := s.say("put 0 0 60", "y"); got != "DRAINING" {
		t.Error(got)
	}
	act(t, ctx, s, "do=undrain")
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
	act(t, ctx, s, fmt.Sprint("do=close-connection&connection=", found.Connections[0].ID))
	comes(t, "connections", 0, func() int { s.asks("/connections?tube=closed-soon", &found); return len(found.Connections) })
}

// Names of tubes that are legal and mean something elsewhere, what an identity is called and what a browser calls itself do nothing on
// any page, and links lead where they should.
func TestHostileNames(t *testing.T) {
	const hostile = `"><img src=x onerror="window.bad=1"><script>window.bad=1</script>`
	s := start(t, secured(t, hostile, false)...)
	ctx := browse(t, chromedp.UserAgent(hostile))
	do(t, ctx, chromedp.Navigate(s.url("login")), chromedp.SendKeys("input[name=token]", testToken+"\r"))
	until(t, ctx, "location.pathname == '/console/' && document.querySelector('.at').textContent.includes('onerror')")
	for _, name := range []string{"/../../login", "a;b$(c)_d+e.f/g", "console/server"} {
		do(t, ctx, chromedp.Navigate(s.url("tube/"+url.PathEscape(name)+"/put")))
		until(t, ctx, "document.querySelector('main form [name=body]')")
		eval[any](t, ctx, fmt.Sprintf("document.querySelector('[name=body]').value = %q", hostile))
		eval[any](t, ctx, "document.querySelector('main form button').click()")
		until(t, ctx, "!!document.querySelector('.note')")
		do(t, ctx, chromedp.Navigate(s.url("tubes")))
		until(t, ctx, fmt.Sprintf("[...document.querySelectorAll('a.tube')].some(a => a.textContent == %q)", name))
		eval[any](t, ctx, fmt.Sprintf("[...document.querySelectorAll('a.tube')].find(a => a.textContent == %q).click()", name))
		until(t, ctx, fmt.Sprintf("document.querySelector('h1.tube')?.textContent == %q && !document.querySelector('#help').hidden", name))
		act(t, ctx, s, "do=bury-jobs&state=ready&tube="+url.QueryEscape(name))
	}
	for _, path := range []string{"", "tubes", "connections", "activity", "server", "search?what=img", "job/1", "nothing/" + url.PathEscape(hostile), "tubes?q=" + url.QueryEscape(hostile), "tube/" + url.PathEscape(hostile)} {
		do(t, ctx, chromedp.Navigate(s.url(path)))
		until(t, ctx, "!!document.querySelector('main') && !document.querySelector('#help').hidden")
		if eval[bool](t, ctx, "!!window.bad || document.querySelectorAll('main img, main script, header img, header script').length > 0") {
			t.Errorf("%s runs or shows what a stranger has sent", path)
		}
	}
}
