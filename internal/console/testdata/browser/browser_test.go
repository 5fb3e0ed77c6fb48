package browser

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/beanpole-mq/beanpole/internal/test/exectest"
	"github.com/beanpole-mq/beanpole/internal/test/freeport"
)

var (
	shots   = flag.String("shots", "", "write pictures of pages to this `directory`")
	warm    = flag.Duration("warm", 2*time.Minute, "let clients work for this `time` before pictures are taken")
	axeMust = flag.Bool("axe", false, "fail if axe-core cannot be got, instead of looking for nothing")
	address = flag.String("console", "", "use the console at this `URL`, of a server that runs already, for pictures")
)

// program is the path of the tested server.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if program, err = exectest.Program(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(exectest.Main(m))
}

const patience = exectest.Patience

// A server is the real program.
type server struct {
	t           *testing.T
	port, admin string
	conn        net.Conn
	replies     *bufio.Reader
	stop        func()
	args        []string
	scheme      string
	token       string // token for the API; empty means none
}

func (s *server) url(path string) string { return s.scheme + "://" + s.admin + "/console/" + path }

// start starts the program with the given arguments.
func start(t *testing.T, args ...string) *server {
	t.Helper()
	s := &server{t: t, port: freePort(t), admin: freePort(t), args: args, scheme: "http"}
	if slices.Contains(args, "--tls-cert") {
		s.scheme = "https"
	}
	s.restart()
	t.Cleanup(func() { s.stop() })
	return s
}

// restart starts the program and waits until it is ready.
func (s *server) restart() {
	s.t.Helper()
	cmd := exec.Command(program, append([]string{"-l", "127.0.0.1", "-p", port(s.port), "--admin", s.admin}, s.args...)...)
	cmd.Stderr = testLog{s.t}
	p, err := exectest.Start(cmd)
	if err != nil {
		s.t.Fatal(err)
	}
	s.conn = nil
	s.stop = sync.OnceFunc(func() { p.Stop() })
	if _, err := p.Await("msg=ready"); err != nil {
		s.t.Fatal(err)
	}
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// freePort returns an address that is reserved until the test ends.
func freePort(t *testing.T) string {
	t.Helper()
	p, err := freeport.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Release)
	return "127.0.0.1:" + p.String()
}

func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// say sends a protocol command and returns the first line of the reply.
func (s *server) say(command string, body ...string) string {
	s.t.Helper()
	if s.conn == nil {
		conn, err := net.Dial("tcp", s.port)
		if err != nil {
			s.t.Fatal(err)
		}
		s.conn, s.replies = conn, bufio.NewReader(conn)
		s.t.Cleanup(func() { conn.Close() })
	}
	for _, b := range body {
		command += fmt.Sprintf(" %d\r\n%s", len(b), b)
	}
	fmt.Fprintf(s.conn, "%s\r\n", command)
	line, err := s.replies.ReadString('\n')
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func (s *server) patch(path, body string) { s.t.Helper(); s.change(http.MethodPatch, path, body) }

func (s *server) change(method, path, body string) {
	s.t.Helper()
	h, err := http.NewRequest(method, "http://"+s.admin+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	h.Header.Set("Content-Type", "application/json")
	if s.token != "" {
		h.Header.Set("Authorization", "Bearer "+s.token)
	}
	r, err := http.DefaultClient.Do(h)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode >= 300 {
		s.t.Fatal(path, r.Status)
	}
}

// task starts a task through the API, and waits until it has ended.
func (s *server) task(tube, request string) {
	s.t.Helper()
	r, err := http.Post("http://"+s.admin+"/api/v1/tubes/"+tube+"/tasks", "application/json", strings.NewReader(request))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusAccepted {
		s.t.Fatal(r.Status)
	}
	s.taskEnds(r.Header.Get("Location"))
}

// taskEnds waits until a task has ended.
func (s *server) taskEnds(path string) {
	s.t.Helper()
	r, err := http.Get("http://" + s.admin + path + "?wait=60")
	if err != nil {
		s.t.Fatal(err)
	}
	r.Body.Close()
}

// fill puts many jobs quickly. The function body returns each job's body.
func (s *server) fill(tube string, n int, body func(i int) string) {
	s.t.Helper()
	s.say("use " + tube)
	const batch = 1000
	for from := 0; from < n; from += batch {
		var commands strings.Builder
		for i := from; i < from+batch; i++ {
			b := body(i)
			fmt.Fprintf(&commands, "put 1024 0 60 %d\r\n%s\r\n", len(b), b)
		}
		go s.conn.Write([]byte(commands.String()))
		for range batch {
			if line, err := s.replies.ReadString('\n'); err != nil || !strings.HasPrefix(line, "INSERTED") {
				s.t.Fatal(line, err)
			}
		}
	}
}

// put puts jobs with the same body into a tube.
func (s *server) put(tube, body string, n int) {
	s.say("use " + tube)
	for range n {
		s.say("put 1024 0 60", body)
	}
}

func browse(t *testing.T, options ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	options = append(append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("no-first-run", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.WSURLReadTimeout(patience)), options...)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience) // a test visits many pages
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	watchHosts(t, ctx)
	return ctx
}

// watchHosts fails the test if a page sends requests to another host.
func watchHosts(t *testing.T, ctx context.Context) {
	t.Helper()
	var mu sync.Mutex
	asked, elsewhere := 0, []string(nil)
	err := chromedp.Listen(ctx, func(ev any) {
		request, ok := ev.(*network.EventRequestWillBeSent)
		if !ok {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		to, err := url.Parse(request.Request.URL)
		if err != nil || to.Hostname() != "127.0.0.1" && to.Scheme != "data" && to.Scheme != "about" {
			elsewhere = append(elsewhere, request.Request.URL)
		}
		asked++
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		if asked == 0 || len(elsewhere) > 0 {
			t.Errorf("of %d requests these went to other hosts: %q", asked, elsewhere)
		}
	})
}

func do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// visit opens a page and waits until it is loaded. [chromedp.Navigate] alone can return
// early, while the previous page is still open, if that page is just removing its note
// from its URL.
func visit(url string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(becomes("document.before = true"), chromedp.Navigate(url), becomes("!document.before && document.readyState == 'complete'"))
}

// mouse clicks on the first element of a selector, in the middle of its visible part. It
// fails if another element covers it.
func mouse(selector string) chromedp.Action[chromedp.Void] {
	at := fmt.Sprintf("(() => { const e = document.querySelector(%q); e.scrollIntoView({ block: 'center', behavior: 'instant' }); const r = e.getClientRects()[0], x = r.x + r.width / 2, y = r.y + r.height / 2, hit = document.elementFromPoint(x, y);"+
		" return e.contains(hit) || hit?.contains(e) ? [x, y] : []; })()", selector)
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		place, err := chromedp.Evaluate[[]float64](at)(ctx, tab)
		if err != nil {
			return err
		}
		if len(place) != 2 {
			return fmt.Errorf("%s is covered or outside of the window", selector)
		}
		_, err = chromedp.MouseClickXY(place[0], place[1])(ctx, tab)
		return err
	})
}

// becomes waits until a JavaScript expression is true, even across page loads.
func becomes(expression string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		for {
			if is, err := chromedp.Evaluate[bool]("!!("+expression+")")(ctx, tab); is && err == nil {
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
}

// eval returns the value of a JavaScript expression.
func eval[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits until a JavaScript expression is true. On a timeout it reports the text of
// the page.
func until(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	limited, cancel := context.WithTimeout(ctx, patience/2)
	defer cancel()
	if err := chromedp.Do(limited, becomes(expression)); err != nil {
		text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
		t.Fatalf("%s never became true: %v\n%s", expression, err, text)
	}
}

// picture writes a full-height picture of a page, after some JavaScript expressions.
func picture(ctx context.Context, t *testing.T, url, file string, width int64, theme string, before ...string) {
	t.Helper()
	do(t, ctx, chromedp.EmulateViewport(width, 800), visit(url))
	eval[string](t, ctx, "document.cookie = 'beanpole-theme="+theme+"; path=/console/'")
	do(t, ctx, visit(url))
	until(t, ctx, "!!document.querySelector('#live[data-on], main .confirm, main .form, main .empty, main .search')")
	for _, expression := range before {
		eval[any](t, ctx, "void ("+expression+")")
	}
	shot, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if shot, err = withFewColours(shot); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*shots, file), shot, 0o644); err != nil {
		t.Fatal(err)
	}
}

// keepBusy runs a shop's queue on the server until the test ends, and returns after
// -warm.
func keepBusy(t *testing.T, s *server) {
	t.Helper()
	demo := filepath.Join(t.TempDir(), "demo")
	build := exec.Command("go", "build", "-o", demo, "./demo")
	build.Dir = "../../../../bench"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(demo, s.port)
	cmd.Stderr = testLog{t}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	time.Sleep(*warm) // the charts show the last ten minutes
}

// TestScreenshots writes pictures if -shots is set:
//
//	go test -run TestScreenshots -timeout 1h -warm 11m -shots DIR
//
// doc/ uses console-overview.png and -dark.png, console-tubes-dark.png,
// console-search.png and console-job.png. TestScenes writes console-disaster.png.
func TestScreenshots(t *testing.T) {
	if *shots == "" {
		t.Skip("no -shots")
	}
	base, job := *address, "job/3"
	var s *server
	if base == "" {
		s = start(t)
		base = s.url("")
		keepBusy(t, s)
	}
	ctx := browse(t)
	for _, one := range []struct {
		path, file string
		width      int64
		theme      string
	}{
		{"", "console-overview.png", 1280, "light"}, {"", "console-overview-dark.png", 1280, "dark"}, {"tubes", "console-tubes.png", 1280, "light"}, {"tube/billing.retry?state=buried", "console-tube-dark.png", 1280, "dark"}, {"tubes", "console-tubes-dark.png", 1280, "dark"},
		{"", "console-phone.png", 360, "light"},
		{"tubes", "console-tubes-phone.png", 360, "dark"}, {"", "console-overview-wide.png", 1920, "dark"}, {"server", "console-server.png", 1280, "light"},
		{"connections", "console-connections.png", 1280, "light"}, {"activity", "console-activity.png", 1280, "light"},
		{"confirm?do=clear-tube&tube=mail&state=ready", "console-confirm.png", 1280, "light"}, {"tube/mail/put", "console-put.png", 1280, "light"},
		{"search?q=%22%5C%22attempt%5C%22:4%22+tube:billing.retry+state:buried", "console-search.png", 1280, "light"}, {"search?q=user1", "console-search-phone.png", 360, "dark"},
		{"tubes?sort=-attention", "console-problems.png", 1920, "dark"}, {"tube/mail", "console-tube-phone.png", 360, "light"}, {"tube/mail", "console-tube-wide.png", 1920, "light"}, {"tube/reports", "console-reports-dark.png", 1280, "dark"},
		{"activity", "console-activity-phone.png", 360, "dark"}, {"server", "console-server-phone.png", 360, "light"}, {"server", "console-server-dark.png", 1280, "dark"}, {"job/3", "console-job-phone.png", 360, "dark"},
		{"confirm?do=change-job&job=3", "console-change.png", 1280, "dark"},
	} {
		picture(ctx, t, base+one.path, one.file, one.width, one.theme)
	}
	if s != nil {
		body, err := os.ReadFile("../../../decode/testdata/bodies/laravel")
		if err != nil {
			t.Fatal(err)
		}
		job = "job/" + s.tryAndBury("invoices", string(body))
	}
	picture(ctx, t, base+job, "console-job.png", 1280, "light")
}

// tryAndBury puts a job that is reserved three times and finally buried, and returns its
// id.
func (s *server) tryAndBury(tube, body string) (id string) {
	s.t.Helper()
	s.say("use " + tube)
	id = strings.TrimPrefix(s.say("put 1024 0 60", body), "INSERTED ")
	for _, end := range []string{"release %s 1024 0", "bury %s 1024", "kick-job %s", "bury %s 1024"} {
		if !strings.HasPrefix(end, "kick") {
			s.say("reserve-job " + id)
			s.replies.ReadString('\n') // reads the body
		}
		s.say(fmt.Sprintf(end, id))
	}
	return id
}
