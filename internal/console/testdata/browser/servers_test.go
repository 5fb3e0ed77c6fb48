package browser

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// beanstalkd starts one and returns its address.
func beanstalkd(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("beanstalkd")
	if err != nil {
		t.Skip("there is no beanstalkd here")
	}
	address := freePort(t)
	cmd := exec.Command(path, "-l", "127.0.0.1", "-p", port(address))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if nc, err := net.Dial("tcp", address); err == nil {
			nc.Close()
			return address
		}
		if time.Now().After(deadline) {
			t.Fatal("beanstalkd does not listen")
		}
	}
}

// showing returns the arguments of a server whose console shows others, by their names and addresses.
func showing(t *testing.T, others ...[2]string) []string {
	t.Helper()
	text := ""
	for _, o := range others {
		text += fmt.Sprintf("[[console-server]]\nname = %q\naddress = %q\n", o[0], o[1])
	}
	path := filepath.Join(t.TempDir(), "beanpole.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--config", path}
}

// The pages of other servers keep nobody out.
func TestServersAccessibility(t *testing.T) {
	program := axe(t)
	far, old := start(t), &server{t: t, port: beanstalkd(t)}
	far.put("mail", "x", 3)
	old.put("legacy-tube", "y", 5)
	s := start(t, showing(t, [2]string{"mail-eu", far.admin}, [2]string{"legacy", "beanstalk://" + old.port}, [2]string{"away", "127.0.0.1:1"})...)
	ctx := browse(t)
	for _, path := range []string{"", "s/legacy/tubes", "s/legacy/tube/legacy-tube", "s/legacy/tube/legacy-tube?state=reserved", "s/legacy/job/1", "s/legacy/server", "s/away/"} {
		inBothThemes(t, ctx, program, s.url(path))
	}
}

// slowDeletes returns the address of a server that passes on what it is sent to the one at an address, and each delete two
// seconds later.
func slowDeletes(t *testing.T, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", address)
			if err != nil {
				client.Close()
				return
			}
			go func() { io.Copy(client, server); client.Close() }()
			go func() {
				defer server.Close()
				for lines := bufio.NewReader(client); ; {
					line, err := lines.ReadString('\n')
					if err != nil {
						return
					}
					if strings.HasPrefix(line, "delete ") {
						time.Sleep(2 * time.Second)
					}
					io.WriteString(server, line)
				}
			}()
		}
	}()
	return l.Addr().String()
}

// A task that takes long can be cancelled: it says so, and leaves what it has not done.
func TestCancelTask(t *testing.T) {
	old := &server{t: t, port: beanstalkd(t)}
	const jobs = 60
	old.put("mail", "x", jobs)
	s := start(t, showing(t, [2]string{"legacy", "beanstalk://" + slowDeletes(t, old.port)})...)
	ctx := browse(t)
	do(t, ctx, visit(s.url("s/legacy/confirm?do=clear-tube&tube=mail&state=ready")))
	until(t, ctx, "document.querySelector('.confirm .bar button')")
	eval[any](t, ctx, "document.querySelector('.confirm .bar button').click()")
	until(t, ctx, "document.querySelector('.note')")
	do(t, ctx, visit(s.url("s/legacy/activity")))
	until(t, ctx, "document.querySelector('a[href*=\"do=cancel-task\"]') && !document.querySelector('#help').hidden")
	eval[any](t, ctx, "document.querySelector('a[href*=\"do=cancel-task\"]').click()")
	until(t, ctx, "document.querySelector('#dialog[open] form button')")
	eval[any](t, ctx, "document.querySelector('#dialog form button').click()")
	until(t, ctx, "document.querySelector('[aria-label=Tasks] [data-label=Status]')?.textContent == 'cancelled'")
	far, done := eval[string](t, ctx, "document.querySelector('[aria-label=Tasks] [data-label=Done]').textContent"), 0
	if n, err := fmt.Sscanf(far, "%d of 60", &done); n != 1 || err != nil || done >= jobs {
		t.Errorf("%s jobs are said to be deleted", far)
	}
	if stats := old.say("stats-tube mail"); !strings.HasPrefix(stats, "OK ") {
		t.Fatal(stats)
	}
	for range 30 {
		line, err := old.replies.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		ready := 0
		if n, _ := fmt.Sscanf(line, "current-jobs-ready: %d", &ready); n == 1 {
			if left := jobs - done; ready != left && ready != left-1 { // one may have been on its way
				t.Errorf("%d jobs are there, and %s are said to be deleted", ready, far)
			}
			return
		}
	}
	t.Error("no count of ready jobs")
}

// From the list of servers one comes to another beanpole and to a beanstalkd, sees them live, and does something there. One that
// goes away is said to be away, and is there again by itself.
func TestServers(t *testing.T) {
	far, old := start(t), &server{t: t, port: beanstalkd(t)}
	far.put("mail", "x", 3)
	old.put("legacy-tube", "y", 5)
	s := start(t, showing(t, [2]string{"mail-eu", far.admin}, [2]string{"legacy", "beanstalk://" + old.port})...)
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
