package browser

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// Values update live, new rows appear, and the page reconnects to a restarted server.
func TestLive(t *testing.T) {
	s := start(t)
	s.put("mail", "x", 3)
	ctx := browse(t)
	do(t, ctx, visit(s.url("")))
	until(t, ctx, "document.querySelector('#n-ready').textContent == '3'")
	eval[bool](t, ctx, "window.here = true")
	s.put("mail", "x", 2)
	until(t, ctx, "document.querySelector('#n-ready').textContent == '5'")
	s.put("news", "x", 1)
	until(t, ctx, "[...document.querySelectorAll('td.name')].some(e => e.textContent.includes('news'))")
	do(t, ctx, chromedp.KeyEvent(" "))
	until(t, ctx, "document.querySelector('#live').textContent == 'paused'")
	do(t, ctx, chromedp.KeyEvent(" "))
	until(t, ctx, "!!document.querySelector('#live[data-on]')")
	if !eval[bool](t, ctx, "window.here") {
		t.Error("the page was loaded as a whole")
	}

	s.stop()
	until(t, ctx, "!!document.querySelector('#live[data-lost]')")
	until(t, ctx, "document.querySelector('#away').textContent.startsWith('No answer since ')") // appears after five seconds
	s.restart()
	until(t, ctx, "document.querySelector('#away').hidden")
	until(t, ctx, "!!document.querySelector('#live[data-on]')")
	until(t, ctx, "document.querySelector('#n-ready').textContent == '0'")
}

// An action opens a dialog with its effect and the number of jobs, and then performs it.
func TestAction(t *testing.T) {
	s := start(t)
	s.put("mail", "x", 3)
	ctx := browse(t)
	do(t, ctx, visit(s.url("tube/mail")))
	until(t, ctx, "!document.querySelector('[data-all]').hidden")
	eval[any](t, ctx, "document.querySelectorAll('tbody input')[1].click()")
	until(t, ctx, "document.querySelector('[data-count]').textContent == '1 selected'")
	eval[any](t, ctx, "document.querySelector('button[value=delete-job]').click()")
	until(t, ctx, "document.querySelector('#dialog[open] h1')?.textContent == 'Delete job 2?'")
	if !eval[bool](t, ctx, "document.activeElement.matches('[data-cancel]')") {
		t.Error("the focus is not on Cancel")
	}
	eval[any](t, ctx, "document.querySelector('#dialog form button').click()")
	until(t, ctx, "document.querySelector('.note')?.textContent == 'Job 2 deleted.' && !document.querySelector('#help').hidden")

	eval[any](t, ctx, ofAll("delete-job"))
	until(t, ctx, "document.querySelector('#dialog[open] .count')?.textContent.includes('2 ready jobs')")
	eval[any](t, ctx, "document.querySelector('#dialog [data-cancel]').click()")
	until(t, ctx, "!document.querySelector('#dialog[open]')")
	if got := s.say("stats-job 1"); !strings.HasPrefix(got, "OK") {
		t.Error(got)
	}
}

// Hostile bodies are shown as text and have no effect.
func TestHostile(t *testing.T) {
	s := start(t)
	for _, body := range []string{"<script>window.bad=1</script>", `"><img src=x onerror="window.bad=1">`, `{"displayName":"<img/src/onerror=window.bad=1>"}`} {
		s.put("mail", body, 1)
	}
	ctx := browse(t)
	for _, path := range []string{"tube/mail", "job/1", "job/2", "job/3", "job/3?as=text"} {
		do(t, ctx, visit(s.url(path)))
		until(t, ctx, "!!document.querySelector('#live[data-on]')")
		if eval[bool](t, ctx, "!!window.bad || document.querySelectorAll('main img, main script').length > 0") {
			t.Errorf("%s runs or renders the contents of a body", path)
		}
	}
}

const (
	axeVersion = "axe-core-4.14.1.tgz"
	axeSum     = "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745"
)

// axe returns the axe-core program, which finds accessibility problems. Its licence is
// the MPL, so the test downloads it and the repository does not contain it.
func axe(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		noAxe(t, "no npm to get axe-core with")
	}
	dir := t.TempDir()
	get := exec.Command("npm", "pack", "--silent", strings.TrimSuffix(strings.Replace(axeVersion, "core-", "core@", 1), ".tgz"))
	get.Dir = dir
	if out, err := get.CombinedOutput(); err != nil {
		noAxe(t, fmt.Sprintf("npm cannot get axe-core: %v\n%s", err, out))
	}
	packed, err := os.ReadFile(filepath.Join(dir, axeVersion))
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(packed); hex.EncodeToString(sum[:]) != axeSum {
		t.Fatalf("axe-core has the wrong checksum %x", sum)
	}
	if out, err := exec.Command("tar", "xzf", filepath.Join(dir, axeVersion), "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "package", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// noAxe ends a test that cannot use axe-core.
func noAxe(t *testing.T, why string) {
	t.Helper()
	if *axeMust {
		t.Fatal(why)
	}
	t.Skip(why)
}

// All pages are accessible to users of screen readers, to users of only a keyboard, and
// to users with low vision.
func TestAccessibility(t *testing.T) {
	program := axe(t)
	s := start(t)
	s.put("mail", `{"job":"Mail","n":1}`, 3)
	s.say("watch mail")
	s.say("reserve-job 1")
	s.replies.ReadString('\n') // reads the body
	s.say("bury 1 1024")
	s.task("mail", `{"do":"change","state":"ready","priority":7}`)
	ctx := browse(t)
	for _, path := range []string{"", "tubes", "tube/mail?state=buried", "job/1", "job/1/edit", "failures", "working", "policies", "schedules", "schedule", "connections", "connection/1", "activity", "server", "login", "tube/mail/put",
		"search", "search?q=job+tube:mail+state:ready", "search?q=age%3Esoon", "tubes?sort=-attention", "tubes?q=none", "job/99", "tube/none", "nothing", "tubes?sort=nonsense",
		"confirm?do=clear-tube&tube=mail&state=ready", "confirm?do=change-job&job=2", "confirm?do=move-jobs&tube=mail&state=ready&q=x"} {
		inBothThemes(t, ctx, program, s.url(path))
	}
	for name, open := range map[string]string{
		"a question":      "document.querySelector('main a[data-dialog]').click()",
		"a bar":           selectAll,
		"the keys":        "document.querySelector('#help').click()",
		"data of a chart": "document.querySelectorAll('figure details').forEach(d => d.open = true)",
	} {
		do(t, ctx, visit(s.url("tube/mail")))
		until(t, ctx, "!document.querySelector('#help').hidden && document.querySelector('figure details')") // charts need several samples
		eval[any](t, ctx, "void ("+open+")")
		until(t, ctx, "document.querySelector('#dialog[open] .confirm, #keys[open], main details[open], tbody :checked')")
		lookAt(t, ctx, program, name)
	}
}

// widths contains the widths of a desktop, a tablet and a phone.
var widths = []int64{1280, 768, 360}

// inBothThemes checks the accessibility of a page in both themes, on a desktop and on a
// phone.
func inBothThemes(t *testing.T, ctx context.Context, program, url string) {
	t.Helper()
	for _, theme := range []string{"light", "dark"} {
		do(t, ctx, visit(url))
		eval[string](t, ctx, "document.cookie = 'beanpole-theme="+theme+"; path=/console/'")
		do(t, ctx, visit(url))
		eval[any](t, ctx, "document.querySelectorAll('.sites').forEach(menu => menu.open = true)")
		for _, width := range widths {
			do(t, ctx, chromedp.EmulateViewport(width, 800))
			lookAt(t, ctx, program, fmt.Sprintf("%s, %s, %d px", url, theme, width))
		}
	}
}

// lookAt checks the accessibility of the current page.
func lookAt(t *testing.T, ctx context.Context, program, what string) {
	t.Helper()
	if !eval[bool](t, ctx, "!!window.axe") {
		eval[any](t, ctx, program+"; 0")
	}
	for _, violation := range evalLater[[]string](t, ctx, `axe.run().then(r => r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html.slice(0, 150) + " " + (n.any[0]?.message ?? "")).slice(0, 3).join(" | ")))`) {
		t.Errorf("%s: %s", what, violation)
	}
}

func evalLater[T any](t *testing.T, ctx context.Context, promise string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](promise, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
