package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// showing returns the arguments for a server whose console shows others, which are given
// by name and address.
func showing(t *testing.T, others ...[2]string) []string {
	t.Helper()
	text := ""
	for _, o := range others {
		text += fmt.Sprintf("[[console-server]]\nname = %q\naddress = %q\n", o[0], "http://"+o[1])
	}
	path := filepath.Join(t.TempDir(), "beanpole.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--config", path}
}

// The pages of other servers are accessible.
func TestServersAccessibility(t *testing.T) {
	program := axe(t)
	far, old := start(t), start(t)
	far.put("mail", "x", 3)
	old.put("legacy-tube", "y", 5)
	s := start(t, showing(t, [2]string{"mail-eu", far.admin}, [2]string{"legacy", old.admin}, [2]string{"away", "127.0.0.1:1"})...)
	ctx := browse(t)
	for _, path := range []string{"", "s/legacy/tubes", "s/legacy/tube/legacy-tube", "s/legacy/tube/legacy-tube?state=reserved", "s/legacy/job/1", "s/legacy/server", "s/away/"} {
		inBothThemes(t, ctx, program, s.url(path))
	}
}

// The list of servers leads to live pages of other servers, which can change them. A
// server that stops is shown as down until it runs again.
func TestServers(t *testing.T) {
	far, old := start(t), start(t)
	far.put("mail", "x", 3)
	old.put("legacy-tube", "y", 5)
	s := start(t, showing(t, [2]string{"mail-eu", far.admin}, [2]string{"legacy", old.admin})...)
	ctx := browse(t)
	do(t, ctx, visit(s.url("")))
	until(t, ctx, "[...document.querySelectorAll('[aria-label=Servers] tbody tr')].map(e => e.cells[1].textContent).join() == '0,3,5'")
	eval[any](t, ctx, "document.querySelector('[aria-label=Servers] a[href=\"/console/s/legacy/\"]').click()")
	until(t, ctx, "location.pathname == '/console/s/legacy/' && document.querySelector('#n-ready')?.textContent == '5' && !!document.querySelector('#live[data-on]')")
	old.put("legacy-tube", "y", 1)
	until(t, ctx, "document.querySelector('#n-ready').textContent == '6'")
	do(t, ctx, chromedp.KeyEvent("g"), chromedp.KeyEvent("t"))
	until(t, ctx, "location.pathname == '/console/s/legacy/tubes' && !document.querySelector('#help').hidden")
	do(t, ctx, visit(s.url("s/legacy/tube/legacy-tube")))
	until(t, ctx, "!document.querySelector('#help').hidden")
	eval[any](t, ctx, ofAll("delete-job"))
	until(t, ctx, "document.querySelector('#dialog[open] .count')?.textContent.includes('6 ready jobs')")
	eval[any](t, ctx, "document.querySelector('#dialog form button').click()")
	until(t, ctx, "document.querySelector('.note')?.textContent == '6 jobs deleted.'")

	eval[any](t, ctx, "document.querySelector('.sites summary').click()")
	eval[any](t, ctx, "document.querySelector('.sites a[href=\"/console/s/mail-eu/\"]').click()")
	until(t, ctx, "location.pathname == '/console/s/mail-eu/' && document.querySelector('#n-ready')?.textContent == '3' && !!document.querySelector('#live[data-on]')")
	far.stop()
	do(t, ctx, visit(s.url("s/mail-eu/tubes")))
	until(t, ctx, "document.querySelector('main').textContent.includes('does not answer')")
	far.restart()
	until(t, ctx, "location.pathname == '/console/s/mail-eu/tubes' && !document.querySelector('main').textContent.includes('does not answer')")
}
