package browser

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/beanpole-mq/beanpole/internal/history"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// A hand performs a user's actions, and counts them.
type hand struct {
	t                   *testing.T
	ctx                 context.Context
	clicks, keys, typed int
}

// click clicks on the first element of a selector, as soon as it is visible.
func (h *hand) click(selector string) {
	h.t.Helper()
	until(h.t, h.ctx, fmt.Sprintf("document.readyState == 'complete' && !document.querySelector('#help').hidden && document.querySelector(%q)?.getClientRects().length", selector))
	do(h.t, h.ctx, mouse(selector))
	h.clicks++
}

// press presses keys one after another on the page.
func (h *hand) press(keys ...string) {
	h.t.Helper()
	until(h.t, h.ctx, "document.readyState == 'complete' && !document.querySelector('#help').hidden")
	for _, key := range keys {
		do(h.t, h.ctx, chromedp.KeyEvent(key))
	}
	h.keys += len(keys)
}

// write replaces the text of a field.
func (h *hand) write(field, text string) {
	h.t.Helper()
	until(h.t, h.ctx, fmt.Sprintf("document.querySelector(%q)?.getClientRects().length", field))
	eval[any](h.t, h.ctx, fmt.Sprintf("document.querySelector(%[1]q).focus(), document.querySelector(%[1]q).value = ''", field))
	do(h.t, h.ctx, chromedp.KeyEvent(text))
	h.typed++
}

const answer = "#dialog[open] form button" // the button of a dialog's form

// TestErrands performs a user's errands within a maximum number of clicks, keys and typed
// texts. Each starts on the page that shows the reason for it.
func TestErrands(t *testing.T) {
	s := start(t)
	mail := func(user int) string {
		return fmt.Sprintf(`{"displayName":"App\\Jobs\\SendMail","job":"x","data":{"to":"user%d@example.com"}}`, user)
	}
	for i := range 30 {
		s.put("failed", mail(i%10), 1)
	}
	s.task("failed", `{"do":"bury","state":"ready"}`)
	s.put("stuck", "x", 3)
	s.put("held", "x", 1)
	s.put("laravel", `{"displayName":"Mail","data":{"command":"O:4:\"Mail\":1:{s:2:\"to\";s:6:\"tpyo@x\";}"}}`, 1)
	s.task("laravel", `{"do":"bury","state":"ready"}`)
	s.say("watch held")
	s.say("reserve")
	s.replies.ReadString('\n') // reads the body
	for i := range 60 {
		s.put("news", fmt.Sprintf(`{"n":%d}`, i), 1)
	}
	ctx := browse(t)
	shows := func(text string) string {
		return fmt.Sprintf("document.querySelector('main').innerText.includes(%q)", text)
	}
	for _, errand := range []struct {
		name                string
		from                string
		clicks, keys, typed int
		do                  func(h *hand)
		done                string // a JavaScript expression
	}{
		{"find why a tube is stuck", "", 1, 0, 0, func(h *hand) { h.click(`.attention a[href$="/tube/stuck"]`) }, shows("No workers: 3 jobs are ready")},
		{"kick the failed jobs of one user", "tube/failed?state=buried", 3, 1, 1, func(h *hand) {
			h.write("main [data-search]", "user7@")
			h.press("\r")
			until(h.t, h.ctx, "document.querySelectorAll('[data-found] mark').length == 3")
			h.click("[data-all]")
			h.click(".pick [value=kick-job]")
			h.click(answer)
		}, shows("3 jobs kicked.")},
		{"find the connection that has held a job longest", "", 1, 0, 0, func(h *hand) { h.click(`nav a[href$="/working"]`) }, `document.querySelector('td[data-label="Held by"] a')?.textContent.startsWith("127.0.0.1:")`},
		{"open a job by its number", "", 0, 2, 1, func(h *hand) { h.press("/"); h.write("#palette input", "5"); h.press("\r") }, "location.pathname.endsWith('/job/5')"},
		{"go to a tube by its name", "server", 0, 2, 1, func(h *hand) { h.press("/"); h.write("#palette input", "news"); h.press("\r") }, "location.pathname.endsWith('/tube/news')"},
		{"pause a tube until it is resumed", "tube/news", 2, 0, 1, func(h *hand) {
			h.click(`main a[href*="do=pause-tube"]`)
			h.write("#dialog [name=seconds]", "until resumed")
			h.click(answer)
		}, shows("Tube news paused until resumed.")},
		{"delete one job of a list", "tube/news?state=ready", 3, 0, 0, func(h *hand) {
			h.click("tbody input[type=checkbox]")
			h.click(".pick [value=delete-job]")
			h.click(answer)
		}, shows("deleted.")},
		{"move all ready jobs to another tube", "tube/news?state=ready", 4, 0, 1, func(h *hand) {
			h.click("tbody input[type=checkbox]")
			h.click(".pick [name=all]")
			h.click(".pick [value=move-job]")
			h.write("#dialog [name=to]", "later")
			h.click(answer)
		}, shows("59 jobs moved.")},
		{"kick all failed jobs of a tube", "tube/failed?state=buried", 2, 0, 0, func(h *hand) { h.click("main .acts .go"); h.click(answer) }, shows("27 jobs kicked.")},
		{"find the connection that holds a job", "tube/held?state=reserved", 1, 0, 0, func(h *hand) { h.click(`td[data-label="Held by"] a`) }, "location.pathname.includes('/connection/')"},
		{"correct a typo in a Laravel job and run it", "tube/laravel?state=buried", 3, 0, 1, func(h *hand) {
			h.click("td.name a")
			h.click(`main a[href$="/edit"]`)
			until(h.t, h.ctx, "document.querySelector('textarea') != null")
			h.write("textarea", strings.Replace(eval[string](h.t, h.ctx, "document.querySelector('textarea').value"), "tpyo@", "typo@", 1))
			h.click("[name=then][value=kick]")
		}, shows("It is ready.")},
		{"see the changes of a tube", "", 0, 4, 1, func(h *hand) {
			h.press("g", "a")
			until(h.t, h.ctx, "location.pathname.endsWith('/activity')")
			h.press("f")
			h.write("main [data-search]", "move news")
			h.press("\r")
		}, shows("end task count 59 do move")},
	} {
		do(t, ctx, visit(s.url(errand.from)))
		h := &hand{t: t, ctx: ctx}
		errand.do(h)
		until(t, ctx, errand.done)
		if h.clicks > errand.clicks || h.keys > errand.keys || h.typed > errand.typed {
			t.Errorf("to %s takes %d clicks, %d keys and %d texts, want at most %d, %d and %d", errand.name, h.clicks, h.keys, h.typed, errand.clicks, errand.keys, errand.typed)
		}
		t.Log(strings.Join([]string{errand.name, fmt.Sprint(h.clicks), fmt.Sprint(h.keys), fmt.Sprint(h.typed)}, " | "))
	}
}

// With two clicks, at each width, a user finds out since when the jobs of a tube have
// failed. The server was restarted, and shows its earlier history.
func TestSinceWhen(t *testing.T) {
	dir := t.TempDir()
	past := history.New(history.Options{FS: vfs.OS, Dir: filepath.Join(dir, "history"), Limit: history.DefaultLimit, Log: slog.Default()})
	now := time.Now().Truncate(time.Minute)
	began := now.Add(-20 * time.Hour)
	for at := now.Add(-30 * time.Hour); at.Before(now); at = at.Add(time.Minute) {
		p := history.Point{Tube: "mail", Values: history.Values{history.Put: 9, history.Done: 9, history.Ready: 20}}
		if at.After(began) {
			p.Values[history.Failed], p.Values[history.Done] = 4, 5
		}
		past.AddMinute(at.UnixMilli(), []history.Point{p})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	past.Run(ctx) // writes the history
	s := start(t, "-b", dir)
	s.put("mail", "x", 1)
	ctx = browse(t)
	for _, width := range allWidths {
		do(t, ctx, chromedp.EmulateViewport(width, 900), visit(s.url("")))
		h := &hand{t: t, ctx: ctx}
		h.click(`#tubes-h ~ * a[href$="/tube/mail"]`)
		until(t, ctx, "location.pathname.endsWith('/tube/mail')")
		h.click(`.spans a[href*="span=24h"]`)
		until(t, ctx, fmt.Sprintf("document.querySelector('main').innerText.includes('first %s UTC')", began.UTC().Format("Mon 15:04")))
		if h.clicks > 2 {
			t.Errorf("%d px: %d clicks", width, h.clicks)
		}
		if eval[bool](t, ctx, "document.documentElement.scrollWidth > innerWidth") {
			t.Errorf("%d px: the page scrolls sideways", width)
		}
	}
}

// These errands need the same few clicks at every width. One retries all failures with
// one reason, the other finds the connection that has held a job longest.
func TestErrandsAtAllWidths(t *testing.T) {
	s := start(t)
	s.put("held", "x", 1)
	s.say("watch held")
	s.say("reserve")
	s.replies.ReadString('\n') // reads the body
	s.say("use mail")
	ctx := browse(t)
	for _, width := range []int64{360, 414, 768, 1024, 1280, 1920} {
		var ids []string
		for i, reason := range []string{"SMTPError: 535 for 17", "SMTPError: 535 for 234", "out of memory"} {
			id := strings.TrimPrefix(s.say("put 1 0 60", fmt.Sprintf(`{"displayName":"Send","data":{"n":%d}}`, i)), "INSERTED ")
			s.say("reserve-job " + id)
			s.replies.ReadString('\n')
			if got := s.say("note " + id + " " + reason); got != "NOTED" {
				t.Fatal(got)
			}
			s.say("bury " + id + " 1")
			ids = append(ids, id)
		}
		do(t, ctx, chromedp.EmulateViewport(width, 900), visit(s.url("")))
		h := &hand{t: t, ctx: ctx}
		h.click(`nav a[href$="/failures"]`)
		h.click("table.failures tbody tr:first-child .button")
		h.click(answer)
		until(t, ctx, `document.querySelector('main').innerText.includes("2 jobs kicked.")`)
		if h.clicks != 3 {
			t.Errorf("%d px: %d clicks to retry all failures of one reason", width, h.clicks)
		}
		for _, id := range ids {
			s.say("delete " + id)
		}
		do(t, ctx, visit(s.url("")))
		h = &hand{t: t, ctx: ctx}
		h.click(`nav a[href$="/working"]`)
		until(t, ctx, `document.querySelector('td[data-label="Held by"] a')?.getClientRects().length && document.querySelector('td[data-label="Held for"]').innerText != ""`)
		if h.clicks != 1 {
			t.Errorf("%d px: %d clicks to find the connection that has held a job longest", width, h.clicks)
		}
	}
}
