package browser

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp"
)

// Pages and actions work without JavaScript: login, colours, filters, search, put,
// and actions on selections.
func TestWithoutScript(t *testing.T) {
	s := start(t, secured(t, "ann", false)...)
	ctx := browse(t, chromedp.Flag("blink-settings", "scriptEnabled=false"))
	step := func(steps ...chromedp.Action[chromedp.Void]) { t.Helper(); do(t, ctx, steps...) }
	shows := func(text string) {
		t.Helper()
		do(t, ctx, chromedp.WaitReady("//main/p[contains(@class, 'note')][contains(., '"+text+"')]"))
	}

	step(chromedp.Navigate("http://"+s.admin+"/"), chromedp.SendKeys("input[name=token]", testToken), chromedp.Click("main button"), chromedp.WaitReady(".strip"))
	step(chromedp.SetValue("select[name=theme]", "dark"), chromedp.Click("#theme button"), chromedp.WaitReady("html[data-theme=dark]"))
	step(chromedp.Navigate(s.url("tube/mail/put")), chromedp.SendKeys("[name=body]", "by hand"), chromedp.Click("main form button"))
	shows("Tube mail has a new job.")
	for range 2 {
		step(chromedp.Navigate(s.url("tube/mail/put")), chromedp.SendKeys("[name=body]", "needle"), chromedp.Click("main form button"))
		shows("Tube mail has a new job.")
	}
	step(chromedp.Navigate(s.url("tubes")), chromedp.SendKeys("main input[name=q]", "ma*"), chromedp.Click("main form[role=search] button"), chromedp.WaitReady("main input[name=q][value='ma*']"), chromedp.WaitReady("a.tube[href='/console/tube/mail']"))
	step(chromedp.Navigate(s.url("search")), chromedp.SendKeys("main input[name=q]", "needle"), chromedp.Click("main form[role=search] button"), chromedp.WaitReady("a[href='/console/job/3']"))
	step(chromedp.Navigate(s.url("")), chromedp.Click("a.tube[href='/console/tube/mail']"), chromedp.WaitReady("input[value='1']"),
		chromedp.Click("input[value='1']"), chromedp.Click("input[value='2']"), chromedp.Click("button[value=bury-job]"), chromedp.WaitReady(".confirm button"),
		chromedp.Click(".confirm button"))
	shows("2 jobs buried.")
}

// Every action is possible with the keyboard alone.
func TestKeyboardOnly(t *testing.T) {
	s := start(t, secured(t, "ann", false)...)
	ctx := browse(t)
	keys := func(keys ...string) {
		t.Helper()
		for _, key := range keys {
			do(t, ctx, chromedp.KeyEvent(key))
		}
	}
	do(t, ctx, visit(s.url("tube/mail/put")))
	until(t, ctx, "document.activeElement.name == 'token'")
	keys(testToken, "\r")
	until(t, ctx, "location.pathname == '/console/tube/mail/put' && !document.querySelector('#help').hidden")
	for job, body := range []string{"hello", "needle", "world"} {
		tabTo(t, ctx, "[name=body]")
		keys(body)
		tabTo(t, ctx, "main form button")
		keys("\r")
		until(t, ctx, "document.querySelector('.note')?.textContent.endsWith('Open job "+string(rune('1'+job))+"') && !document.querySelector('#help').hidden")
		if job < 2 {
			tabTo(t, ctx, "a[href$='/put']")
			keys("\r")
			until(t, ctx, "location.pathname == '/console/tube/mail/put' && !document.querySelector('#help').hidden")
		}
	}

	until(t, ctx, "document.querySelectorAll('.jobs tbody tr').length == 3 && !document.querySelector('[data-all]').hidden")
	keys("j", "j", "x")
	until(t, ctx, "document.querySelector('[data-count]').textContent == '1 selected'")
	tabTo(t, ctx, "button[value=bury-job]")
	keys("\r")
	until(t, ctx, "document.querySelector('#dialog[open] h1')?.textContent == 'Bury job 2?'")
	tabTo(t, ctx, "#dialog button.go")
	keys("\r")
	until(t, ctx, "document.querySelector('.note')?.textContent == 'Job 2 buried.' && !document.querySelector('#help').hidden")

	keys("g", "f")
	until(t, ctx, "location.pathname == '/console/search' && !document.querySelector('#help').hidden")
	tabTo(t, ctx, "main input[name=q]")
	keys("needle", "\r")
	until(t, ctx, "document.querySelector('[data-found] .tube')?.textContent == '2' && !document.querySelector('#help').hidden")

	keys("g", "t")
	until(t, ctx, "location.pathname == '/console/tubes' && !document.querySelector('#help').hidden")
}

// tabTo presses Tab until an element has the focus.
func tabTo(t *testing.T, ctx context.Context, selector string) {
	t.Helper()
	for range 200 {
		if eval[bool](t, ctx, "document.activeElement.matches(`"+selector+"`)") {
			return
		}
		do(t, ctx, chromedp.KeyEvent("\t"))
	}
	t.Fatalf("Tab does not reach %s", selector)
}
