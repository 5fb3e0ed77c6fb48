package contrib_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/client"
)

var withPrometheus = flag.Bool("contrib.prometheus", false, "run a Prometheus beside a server under load, and ask it for all that the dashboard shows")

// patience is how long Prometheus may take to have data of everything.
const patience = 90 * time.Second

// TestPrometheus asks a Prometheus that scrapes a busy server for every expression of the
// dashboard: each must give data.
func TestPrometheus(t *testing.T) {
	if !*withPrometheus {
		t.Skip("runs only with -contrib.prometheus")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	addr, pages := serve(ctx, t)
	api := scrape(ctx, t, pages)
	left := expressions(t)
	defer func() {
		for what, expr := range left {
			_, err := hasData(t.Context(), api, expr)
			t.Errorf("%s: there is no data: %s (%v)", what, expr, err)
		}
	}()
	for len(left) > 0 {
		work(ctx, t, addr)
		for what, expr := range left {
			if ok, err := hasData(ctx, api, expr); err == nil && ok { // at first it has not started yet
				delete(left, what)
			}
		}
	}
}

// serve starts a server with a journal, and returns its address and that of its admin pages.
func serve(ctx context.Context, t *testing.T) (addr, pages string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "beanpole")
	if out, err := exec.Command("go", "build", "-o", program, "../cmd/beanpole").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	log := start(ctx, t, program, "-p", "0", "--admin", "127.0.0.1:0", "-b", t.TempDir(), "--max-memory", "100000000")
	pages = await(t, log, `admin pages" address=(\S+)`)
	addr = await(t, log, `listening address=(\S+)`)
	go io.Copy(io.Discard, log)
	return addr, pages
}

// scrape starts a Prometheus that scrapes the pages, and returns its address.
func scrape(ctx context.Context, t *testing.T, pages string) (api string) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "prometheus.yml")
	text := fmt.Sprintf("scrape_configs:\n- job_name: beanpole\n  scrape_interval: 1s\n  static_configs: [{targets: ['%s']}]\n", pages)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // Prometheus does not say which port it was given
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	api = l.Addr().String()
	log := start(ctx, t, "prometheus", "--config.file="+config, "--storage.tsdb.path="+t.TempDir(), "--web.listen-address="+api)
	go io.Copy(io.Discard, log)
	return api
}

// start starts a program, which ends with the test, and returns what it writes to stderr.
func start(ctx context.Context, t *testing.T, program string, args ...string) *bufio.Reader {
	t.Helper()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Cancel()
		cmd.Wait()
	})
	return bufio.NewReader(stderr)
}

// await returns what the expression finds in the first line where it finds something.
func await(t *testing.T, log *bufio.Reader, expr string) string {
	t.Helper()
	re := regexp.MustCompile(expr)
	for {
		line, err := log.ReadString('\n')
		if m := re.FindStringSubmatch(line); m != nil {
			return m[1]
		}
		if err != nil {
			t.Fatalf("the server did not write %s: %v", expr, err)
		}
	}
}

// work is a second of a queue's life: jobs in each state and of every fate, a tube that
// is paused, workers that wait, and a command that is refused.
func work(ctx context.Context, t *testing.T, addr string) {
	t.Helper()
	c, err := client.Dial(ctx, addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	put := func(tube string, delay time.Duration) {
		if _, err := c.Put(ctx, client.NewJob{Tube: tube, Body: []byte("hello"), Delay: delay}); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		put("mail", 0)
	}
	put("mail", time.Hour)
	put("backlog", 0)
	must(c.PauseTube(ctx, "backlog", time.Hour))
	must(c.WatchOnly(ctx, "mail"))
	for i := range 4 {
		job, err := c.Reserve(ctx)
		must(err)
		switch i {
		case 0:
			must(job.Touch(ctx))
			must(job.Delete(ctx))
		case 1:
			must(job.Bury(ctx, 0))
		case 2:
			must(c.Release(ctx, job.ID, 0, time.Hour))
		case 3: // it is held during the wait
		}
	}
	must(c.WatchOnly(ctx, "quiet"))
	if _, err := c.ReserveTimeout(ctx, time.Second); !errors.Is(err, client.ErrTimedOut) {
		t.Fatal(err)
	}
}

// hasData reports whether an expression has a value that is a number.
func hasData(ctx context.Context, api, expr string) (ok bool, err error) {
	r, err := http.NewRequestWithContext(ctx, "GET", "http://"+api+"/api/v1/query?query="+url.QueryEscape(expr), nil)
	if err != nil {
		return false, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	var answer struct {
		Error string
		Data  struct{ Result []struct{ Value [2]any } }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return false, err
	}
	if answer.Error != "" {
		return false, errors.New(answer.Error)
	}
	for _, r := range answer.Data.Result {
		if r.Value[1] != "NaN" {
			return true, nil
		}
	}
	return false, nil
}
