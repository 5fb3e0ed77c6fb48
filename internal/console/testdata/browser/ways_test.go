package browser

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// A search continues automatically to the end, and actions apply to all its matches.
func TestSearch(t *testing.T) {
	s := start(t)
	s.fill("mail", 120_000, func(i int) string { return fmt.Sprintf(`{"n":%d}`, i) })
	ctx := browse(t)
	do(t, ctx, visit(s.url("tube/mail")))
	do(t, ctx, chromedp.SendKeys("main input[name=q]", "/n = 119999\r"))
	until(t, ctx, "document.querySelector('[data-found] .tube')?.textContent == '120000'")
	until(t, ctx, "document.querySelector('[data-progress]').textContent.includes('1 found in 120\u202f000 jobs')")
	eval[any](t, ctx, ofAll("delete-job"))
	until(t, ctx, "document.querySelector('#dialog[open] .count')?.textContent.includes('The jobs that match, out of 120\u202f000 ready now')")
	do(t, ctx, chromedp.SendKeys("#dialog input[name=typed]", "mail\r"))
	until(t, ctx, "!!document.querySelector('.note')")
	s.taskEnds("/api/v1/tasks/1")
	if got := s.say("peek 120000"); got != "NOT_FOUND" {
		t.Error(got)
	}

	do(t, ctx, visit(s.url("tube/mail?state=ready")))
	eval[any](t, ctx, ofAll("delete-job"))
	do(t, ctx, chromedp.WaitVisible("#dialog input[name=typed]"), chromedp.SendKeys("#dialog input[name=typed]", "mail\r"))
	until(t, ctx, "!!document.querySelector('.note')")
	do(t, ctx, visit(s.url("activity")))
	until(t, ctx, "document.querySelector('tbody td[data-label=Status]')?.textContent == 'done'")
	if got := s.say("peek-ready"); got != "NOT_FOUND" {
		t.Error(got)
	}
}

// A search that stops because the server does not answer can be continued, and keeps its
// URL.
func TestSearchUnreachable(t *testing.T) {
	s := start(t)
	s.fill("mail", 120_000, func(i int) string { return fmt.Sprintf(`{"n":%d}`, i) })
	ctx := browse(t)
	do(t, ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: "window.asked = 0; window.fetch = () => { asked++; return Promise.reject(new TypeError('away')); };",
		})
		return err
	}))
	do(t, ctx, visit(s.url("search?q=tube:mail+/n+%3D+119999")))
	until(t, ctx, "asked == 1 && document.querySelector('a[data-continue]').textContent == 'Continue'")
	first := eval[string](t, ctx, "location.search")
	do(t, ctx, mouse("a[data-continue]"))
	until(t, ctx, "asked == 2 && document.querySelector('a[data-continue]').textContent == 'Continue'")
	if now := eval[string](t, ctx, "location.search"); now != first {
		t.Errorf("the search %s changed to %s", first, now)
	}
}

// A key opens the dialog of its action for the selected rows, the current row, or the
// page's object. In a text field, the key types a letter.
func TestActionKeys(t *testing.T) {
	s := start(t)
	s.put("mail", "x", 3)
	ctx := browse(t)
	asks := func(title string) {
		t.Helper()
		until(t, ctx, "document.querySelector('#dialog[open] h1')?.textContent == '"+title+"'")
		eval[any](t, ctx, "document.querySelector('#dialog [data-cancel]').click()")
		until(t, ctx, "!document.querySelector('#dialog[open]')")
	}
	do(t, ctx, visit(s.url("tube/mail")))
	until(t, ctx, "!document.querySelector('#help').hidden")
	do(t, ctx, chromedp.KeyEvent("p"))
	asks("Pause tube mail?")
	do(t, ctx, chromedp.KeyEvent("j"), chromedp.KeyEvent("j"))
	until(t, ctx, "document.activeElement.textContent == '2'") // also announced by screen readers
	do(t, ctx, chromedp.KeyEvent("B"))
	asks("Bury job 2?")
	do(t, ctx, chromedp.KeyEvent("j"), chromedp.KeyEvent("x"), chromedp.KeyEvent("D"))
	asks("Delete 2 jobs?")
	do(t, ctx, chromedp.KeyEvent("f"))
	until(t, ctx, "document.activeElement.matches('main input[name=q]')")
	do(t, ctx, chromedp.KeyEvent("D"))
	until(t, ctx, "document.activeElement.value.endsWith('D')")
	do(t, ctx, visit(s.url("job/1")))
	until(t, ctx, "!document.querySelector('#help').hidden")
	do(t, ctx, chromedp.KeyEvent("m"))
	asks("Move job 1?")
	do(t, ctx, chromedp.KeyEvent("u"))
	until(t, ctx, "location.pathname == '/console/tube/mail' && !document.querySelector('#help').hidden")
	do(t, ctx, chromedp.KeyEvent("g"), chromedp.KeyEvent("s"))
	until(t, ctx, "location.pathname == '/console/server'")
}

// startTube opens the live page of the tube mail with 12 jobs.
func startTube(t *testing.T) (*server, context.Context) {
	t.Helper()
	s := start(t)
	s.put("mail", "x", 12)
	ctx := browse(t)
	do(t, ctx, visit(s.url("tube/mail")))
	until(t, ctx, "document.querySelector('#live[data-on]')")
	return s, ctx
}

// The page keeps its rows while a part of it has the focus or rows are selected. The
// button that offers the new rows covers none of the actions on the selection. A click on
// it shows the rows.
func TestShowRows(t *testing.T) {
	s, ctx := startTube(t)
	eval[any](t, ctx, "document.querySelector('main a').focus()")
	s.put("mail", "y", 1)
	until(t, ctx, "document.querySelector('#moved')")
	eval[any](t, ctx, selectAll)
	for _, width := range []int64{360, 768, 1280, 1920} {
		do(t, ctx, chromedp.EmulateViewport(width, 900))
		covered := eval[[]string](t, ctx, "scrollTo(0, 0), [...document.querySelectorAll('.pick button')].filter((b) => { const r = b.getBoundingClientRect(); return document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2) !== b; }).map((b) => b.value)")
		if len(covered) > 0 {
			t.Errorf("at %d pixels these buttons are covered: %q", width, covered)
		}
	}
	do(t, ctx, mouse("#moved"))
	until(t, ctx, "document.querySelectorAll('.jobs tbody tr').length == 13 && !document.querySelector('#moved')")
}

// The page keeps its rows while a button of the pointer is down, so that no click is lost.
func TestRowsStayUnderPress(t *testing.T) {
	s, ctx := startTube(t)
	rows := "document.querySelectorAll('.jobs tbody tr').length"
	eval[any](t, ctx, "document.body.dispatchEvent(new PointerEvent('pointerdown'))")
	for _, ready := range []string{"13", "14"} { // each is a message of the stream
		s.put("mail", "y", 1)
		until(t, ctx, "[...document.querySelectorAll('main [id]')].some((e) => e.textContent == '"+ready+"')")
	}
	if n := eval[int](t, ctx, rows); n != 12 {
		t.Errorf("%d rows", n)
	}
	eval[any](t, ctx, "document.body.dispatchEvent(new PointerEvent('pointerup'))")
	until(t, ctx, rows+" == 14")
}

// The result of an action stays on the page when other rows are shown.
func TestNoteStays(t *testing.T) {
	s := start(t)
	ctx := browse(t)
	do(t, ctx, visit(s.url("tube/mail/put")))
	until(t, ctx, "document.querySelector('main form [name=body]')")
	eval[any](t, ctx, "document.querySelector('[name=body]').value = 'x'")
	eval[any](t, ctx, "document.querySelector('main form button').click()")
	until(t, ctx, "document.querySelector('#live[data-on]') && document.querySelectorAll('.jobs tbody tr').length == 1")
	s.put("mail", "y", 1)
	until(t, ctx, "document.querySelectorAll('.jobs tbody tr').length == 2")
	if got := eval[string](t, ctx, "document.querySelector('main > .note')?.textContent ?? ''"); got != "Tube mail has a new job. Open job 1" {
		t.Errorf("the note is %q", got)
	}
}

// A change in one tab appears in another. The page reports deleted jobs as deleted.
func TestTwoTabs(t *testing.T) {
	s := start(t)
	s.put("mail", "x", 3)
	one := browse(t)
	do(t, one, visit(s.url("tube/mail")))
	two, cancel := chromedp.NewContext(one)
	t.Cleanup(cancel)
	do(t, two, visit(s.url("job/2")))
	until(t, two, "!!document.querySelector('#live[data-on]')")
	eval[any](t, two, "[...document.querySelectorAll('a[data-dialog]')].find(a => a.textContent == 'Bury…').click()")
	until(t, two, "!!document.querySelector('#dialog[open] button.go')")
	eval[any](t, two, "document.querySelector('#dialog button.go').click()")
	until(t, two, "document.querySelector('.note')?.textContent == 'Job 2 buried.'")
	do(t, one, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		return tab.Call(ctx, "Page.bringToFront", nil, nil)
	}))
	until(t, one, "!document.hidden && document.querySelector('#c-buried')?.textContent == '1'")
	do(t, one, visit(s.url("tube/mail?state=buried")))
	until(t, one, "document.querySelector('tbody .tube')?.textContent == '2'")
	s.say("delete 2")
	do(t, two, visit(s.url("job/2")))
	until(t, two, "document.body.textContent.includes('This job does not exist')")
}

// On a slow network, pages appear late but complete, and actions work.
func TestSlowNetwork(t *testing.T) {
	s := start(t)
	s.put("mail", "x", 3)
	ctx := browse(t)
	do(t, ctx, visit("about:blank"), chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		if err := tab.Call(ctx, "Network.enable", map[string]any{}, nil); err != nil {
			return err
		}
		return tab.Call(ctx, "Network.emulateNetworkConditions", map[string]any{"offline": false, "latency": 300, "downloadThroughput": 40_000, "uploadThroughput": 10_000}, nil)
	}))
	do(t, ctx, visit(s.url("")))
	until(t, ctx, "document.querySelector('#n-ready').textContent == '3' && !!document.querySelector('#live[data-on]')")
	s.put("mail", "x", 2)
	until(t, ctx, "document.querySelector('#n-ready').textContent == '5'")
	do(t, ctx, visit(s.url("job/1")))
	until(t, ctx, "!document.querySelector('#help').hidden")
	eval[any](t, ctx, "document.querySelector('a.danger[data-dialog]').click()")
	until(t, ctx, "!!document.querySelector('#dialog[open] button.danger')")
	eval[any](t, ctx, "document.querySelector('#dialog button.danger').click()")
	until(t, ctx, "document.querySelector('.note')?.textContent == 'Job 1 deleted.'")
}

const testToken = "token-of-the-browser-0123456789"

// secured returns the arguments for a server that has an identity, and that uses TLS if
// encrypted is set.
func secured(t *testing.T, name string, encrypted bool) []string {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	args := []string{"--config", write("beanpole.toml", fmt.Sprintf("[[identity]]\nname = %q\ntokens = [\"sha256:%x\"]\n[[rule]]\nidentities = [%q]\ntubes = [\"*\"]\nallow = [\"all\"]\n",
		name, sha256.Sum256([]byte(testToken)), name))}
	if !encrypted {
		return args
	}
	certificate, key := selfSigned(t, time.Now().Add(time.Hour))
	return append(args, "--tls-cert", write("tls.crt", certificate), "--tls-key", write("tls.key", key))
}

// A user without a token sees nothing. With the token, the user sees the permitted pages,
// until the logout.
func TestLogin(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		s := start(t, secured(t, "ann", encrypted)...)
		ctx := browse(t, chromedp.Flag("ignore-certificate-errors", true))
		do(t, ctx, visit(s.url("server")))
		until(t, ctx, "location.pathname == '/console/login'")
		do(t, ctx, chromedp.SendKeys("input[name=token]", "wrong-token-0123456789\r"))
		until(t, ctx, "document.querySelector('main [role=alert]')?.textContent.includes('Unknown token.')")
		do(t, ctx, chromedp.SendKeys("input[name=token]", testToken+"\r"))
		until(t, ctx, "location.pathname == '/console/server' && !!document.querySelector('#live[data-on]')")
		if text := eval[string](t, ctx, "document.body.innerText + document.cookie"); len(text) < 1000 {
			t.Errorf("the page has %d characters", len(text))
		}
		if eval[bool](t, ctx, "document.documentElement.outerHTML.includes('"+testToken+"') || document.cookie.includes('session')") {
			t.Error("the page can read the token or its session")
		}
		if encrypted {
			if got := eval[string](t, ctx, "[...document.querySelectorAll('td')].find(e => e.textContent.endsWith('tls.crt'))?.textContent ?? ''"); got == "" {
				t.Error("the server page does not show the certificate")
			}
		}
		eval[any](t, ctx, "document.querySelector('form[action=\"/console/logout\"] button').click()")
		until(t, ctx, "location.pathname == '/console/login'")
		do(t, ctx, visit(s.url("tubes")))
		until(t, ctx, "location.pathname == '/console/login'")
	}
}

// With a million jobs in 10,000 tubes, pages are shown and a search covers all jobs.
func TestMillionJobs(t *testing.T) {
	if os.Getenv("BEANPOLE_LONG") == "" {
		t.Skip("BEANPOLE_LONG is not set")
	}
	s := start(t)
	s.fill("mail", 1_000_000, func(i int) string { return fmt.Sprintf(`{"job":"Send","to":"user%d@example.com"}`, i) })
	manyTubes(t, s, 10_000)
	ctx := browse(t)
	for _, path := range []string{"", "tubes", "tubes?q=tenant-99*&sort=-oldest_ready", "tube/mail", "job/999999"} {
		began := time.Now()
		do(t, ctx, visit(s.url(path)))
		until(t, ctx, "!!document.querySelector('#live[data-on]')")
		t.Logf("%q is loaded and live after %v", path, time.Since(began))
	}
	began := time.Now()
	do(t, ctx, visit(s.url("search?q=user999998@+tube:mail")))
	until(t, ctx, "document.querySelector('[data-found] .tube')?.textContent == '999999'")
	t.Logf("the job was found after %v", time.Since(began))
}

// TestNextRuns types a schedule, checks that its next runs appear, and saves it.
func TestNextRuns(t *testing.T) {
	s := start(t)
	ctx := browse(t)
	do(t, ctx, visit(s.url("schedule")))
	do(t, ctx, chromedp.SendKeys("input[name=cron]", "30 25 * * *"))
	until(t, ctx, "document.querySelector('[data-part]').textContent.includes('Column 4')")
	eval[any](t, ctx, "document.querySelector('input[name=cron]').value = ''")
	do(t, ctx, chromedp.SendKeys("input[name=cron]", "30 3 * * *"), chromedp.SendKeys("input[name=timezone]", "Asia/Tokyo"))
	until(t, ctx, "document.querySelectorAll('[data-part] li').length == 5 && document.querySelector('[data-part]').textContent.includes('03:30:00 JST')")
	do(t, ctx, chromedp.SendKeys("input[name=name]", "nightly"), chromedp.SendKeys("input[name=tube]", "reports\r"))
	until(t, ctx, "document.querySelector('.note')?.textContent.includes('Schedule nightly saved.')")
}
