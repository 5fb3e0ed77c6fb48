package browser

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The choices of the palette can be opened by mouse, touch and keys. Enter opens the
// first choice, or a search if there is no other choice.
func TestPalette(t *testing.T) {
	s := start(t)
	s.put("exports", "needle", 1)
	s.put("mail", "x", 1)
	ctx := browse(t)
	for name, choose := range map[string]func(){
		"a click": func() { do(t, ctx, mouse(`#palette a[href$="/tube/exports"]`)) },
		"a touch": func() {
			at := eval[[]float64](t, ctx, `(r => [r.x + 20, r.y + 8])(document.querySelector('#palette a[href$="/tube/exports"]').getBoundingClientRect())`)
			do(t, ctx, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
				if err := tab.Call(ctx, "Input.dispatchTouchEvent", map[string]any{"type": "touchStart", "touchPoints": []any{map[string]any{"x": at[0], "y": at[1]}}}, nil); err != nil {
					return err
				}
				return tab.Call(ctx, "Input.dispatchTouchEvent", map[string]any{"type": "touchEnd", "touchPoints": []any{}}, nil)
			}))
		},
		"the arrow and Enter": func() {
			do(t, ctx, chromedp.KeyEvent(kb.ArrowDown))
			until(t, ctx, "document.activeElement.matches('#palette a')")
			do(t, ctx, chromedp.KeyEvent("\r"))
		},
		"Enter": func() { do(t, ctx, chromedp.KeyEvent("\r")) },
	} {
		t.Log(name)
		do(t, ctx, visit(s.url("server")))
		until(t, ctx, "!document.querySelector('#help').hidden")
		do(t, ctx, mouse("#find"))
		until(t, ctx, "document.querySelector('#palette[open]')")
		do(t, ctx, chromedp.KeyEvent("exports"))
		until(t, ctx, `document.querySelectorAll('#palette a').length == 2 && document.querySelector('#palette a[href$="/tube/exports"]')`)
		choose()
		until(t, ctx, "location.pathname == '/console/tube/exports'")
	}
	do(t, ctx, visit(s.url("server")))
	until(t, ctx, "!document.querySelector('#help').hidden")
	do(t, ctx, mouse("#find"))
	until(t, ctx, "document.querySelector('#palette[open]')")
	do(t, ctx, chromedp.KeyEvent("needle state:ready"), chromedp.KeyEvent("\r"))
	until(t, ctx, "location.pathname == '/console/search' && document.querySelector('[data-found] .tube')?.textContent == '1'")
}

// If the server does not answer, the selection and the typed text are kept.
func TestNothingIsLost(t *testing.T) {
	s := start(t)
	s.put("mail", "x", 3)
	ctx := browse(t)
	alert := func(text string) string {
		return fmt.Sprintf("[...document.querySelectorAll('[role=alert]')].some(e => e.checkVisibility() && e.textContent.includes(%q))", text)
	}
	// If the job of an action no longer exists, the dialog shows the reason.
	do(t, ctx, visit(s.url("tube/mail")))
	until(t, ctx, "!document.querySelector('[data-all]').hidden")
	do(t, ctx, mouse("tbody input[value='2']"), mouse(".pick [value=bury-job]"))
	until(t, ctx, "document.querySelector('#dialog[open] .bar button')")
	s.stop()
	do(t, ctx, mouse("#dialog .bar button"))
	until(t, ctx, alert("The server does not answer, so the result is unknown."))
	do(t, ctx, mouse("#dialog [data-cancel]"), mouse(".pick [value=delete-job]"))
	until(t, ctx, alert("The server does not answer. Nothing was changed."))
	do(t, ctx, mouse("#dialog [data-cancel]"))
	if !eval[bool](t, ctx, "document.querySelector(\"tbody input[value='2']\").checked && location.pathname == '/console/tube/mail'") {
		t.Error("the selection was lost")
	}
	s.restart()
	s.put("mail", "a body", 1)

	// A form keeps its text when the server is unreachable, and when the job no longer
	// exists.
	do(t, ctx, visit(s.url("job/1/edit")))
	until(t, ctx, "document.querySelector('textarea')?.value == 'a body' && !document.querySelector('#help').hidden")
	eval[any](t, ctx, "document.querySelector('textarea').focus(), document.querySelector('textarea').value = ''")
	do(t, ctx, chromedp.KeyEvent("an hour of typing"))
	s.stop()
	do(t, ctx, mouse("main .form .go"))
	until(t, ctx, alert("The server does not answer"))
	s.restart()
	do(t, ctx, mouse("main .form .go"))
	until(t, ctx, alert("There is no job 1."))
	if got := eval[string](t, ctx, "document.querySelector('textarea').value"); got != "an hour of typing" {
		t.Errorf("the text is %q", got)
	}

	// A wrong value is reported in the dialog, which keeps the other values.
	s.put("mail", "x", 1)
	do(t, ctx, visit(s.url("tube/mail")))
	until(t, ctx, "!document.querySelector('#help').hidden")
	do(t, ctx, mouse(`main a[href*="do=pause-tube&"]`))
	until(t, ctx, "document.querySelector('#dialog[open] [name=seconds]')")
	eval[any](t, ctx, "document.querySelector('#dialog [name=seconds]').value = 'soon'")
	do(t, ctx, mouse("#dialog .bar button"))
	until(t, ctx, alert("Duration: enter a time such as"))
	if got := eval[string](t, ctx, "document.querySelector('#dialog[open] [name=seconds]').value"); got != "soon" {
		t.Errorf("the field contains %q", got)
	}
}

// A search that finds its first job on a later page keeps its URL, so a reload starts
// from the first page.
func TestSearchKeepsItsURL(t *testing.T) {
	s := start(t)
	s.fill("aaa", 60_000, func(i int) string { return "hay" })
	s.put("zzz", "needle2", 1)
	ctx := browse(t)
	do(t, ctx, visit(s.url("search?q=needle2")))
	until(t, ctx, "document.querySelectorAll('[data-found] tr').length == 1 && document.querySelector('main').innerText.includes('Search complete.')")
	if got := eval[string](t, ctx, "location.search"); got != "?q=needle2" {
		t.Errorf("the URL changed to %s", got)
	}
	if got := eval[string](t, ctx, "document.querySelector('main form[data-confirm] [name=back]').value"); got != "/console/search?q=needle2" {
		t.Errorf("an action leads back to %s", got)
	}
	s.put("aab", "needle2", 1)
	do(t, ctx, visit(s.url("search?q=needle2")))
	until(t, ctx, "document.querySelectorAll('[data-found] tr').length == 2")
}

// TestMoreErrands performs errands that start with a dead tube, a time of day or a held
// job.
func TestMoreErrands(t *testing.T) {
	s := start(t)
	s.setDead("payments")
	for i := range 4 {
		s.die("payments", fmt.Sprintf(`{"class":"Charge","n":%d}`, i))
	}
	for i := range 30 {
		s.put("imports", fmt.Sprintf(`{"class":%q,"n":%d}`, []string{"SyncCrm", "ImportRow"}[i%2], i), 1)
	}
	s.put("mail-a", "x", 1)
	s.put("mail-b", "x", 1)
	s.say("watch imports")
	s.say("reserve-job 5")
	s.replies.ReadString('\n') // reads the body
	ctx := browse(t)
	do(t, ctx, chromedp.EmulateViewport(853, 900))
	for _, one := range []struct {
		name, from string
		clicks     int
		do         func(h *hand)
		done       func() bool
	}{
		{"redrive one job", "job/1", 2, func(h *hand) { h.click(`main a[href*="do=redrive-job&"]`); h.answer() }, func() bool { return s.at("/jobs/1") == "payments ready" }},
		{"redrive a selection", "tube/payments.dead", 3, func(h *hand) {
			h.click("tbody input[value='2']")
			h.click(".pick [value=redrive-job]")
			h.answer()
		}, func() bool { return s.at("/jobs/2") == "payments ready" }},
		{"redrive all dead jobs", "tube/payments.dead", 2, func(h *hand) { h.click("main .acts .go"); h.answer() }, func() bool { return s.at("/jobs/3") == "payments ready" && s.at("/jobs/4") == "payments ready" }},
		{"delete the jobs of one class", "tube/imports?state=ready", 5, func(h *hand) {
			h.write("main [data-search]", "SyncCrm")
			h.click("main .search button")
			until(t, ctx, "document.querySelectorAll('[data-found] tr').length == 14")
			h.click("[data-all]")
			h.click(".pick [name=all]")
			h.click(".pick [value=delete-job]")
			h.answer()
		}, func() bool { var now tubeNow; s.asks("/tubes/imports", &now); return now.Jobs.Ready == 15 }},
		{"pause mail-* until 9:00", "tubes?q=mail-*", 3, func(h *hand) {
			h.click("[data-all]")
			h.click(".pick [value=pause-tube]")
			h.write("#dialog [name=seconds]", "until 9:00")
			h.answer()
			until(t, ctx, "document.querySelector('.note')?.textContent.match(/2 tubes paused until .* 09:00 UTC/)")
		}, func() bool {
			var now tubeNow
			s.asks("/tubes/mail-b", &now)
			return now.Pause > 0 && now.Pause <= 86400
		}},
		{"export one state", "tube/imports?state=ready", 0, func(h *hand) {}, func() bool {
			text := evalLater[string](t, ctx, "fetch(document.querySelector('a[download]').href).then(async r => r.headers.get('Content-Disposition') + (await r.text()).trim().split('\\n').length)")
			return text == `attachment; filename=imports-ready.ndjson15`
		}},
		{"open a job by its number on a phone", "", 2, func(h *hand) {
			do(t, ctx, chromedp.EmulateViewport(360, 800))
			h.click("#find")
			h.write("#palette input", "5")
			until(t, ctx, "document.querySelector('#palette a[href$=\"/job/5\"]')")
			h.click("#palette a")
		}, func() bool { return eval[bool](t, ctx, "location.pathname.endsWith('/job/5')") }},
	} {
		do(t, ctx, visit(s.url(one.from)))
		h := &hand{t: t, ctx: ctx}
		one.do(h)
		for deadline := time.Now().Add(patience / 2); !one.done(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: not done: %s", one.name, eval[string](t, ctx, "document.body.innerText"))
			}
		}
		if h.clicks > one.clicks {
			t.Errorf("%s takes %d clicks, want at most %d", one.name, h.clicks, one.clicks)
		}
		t.Log(one.name, h.clicks, h.typed)
	}
}

// answer confirms a question, and waits for the page after it.
func (h *hand) answer() {
	h.t.Helper()
	h.click(answer)
	until(h.t, h.ctx, "document.readyState == 'complete' && document.querySelector('.note') && !document.querySelector('dialog[open]')")
}

// at returns the tube and the state of a job.
func (s *server) at(path string) string {
	var j jobNow
	s.asks(path, &j)
	return j.Tube + " " + j.State
}
