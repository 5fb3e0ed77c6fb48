package contrib_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/certs/localca"
	"github.com/beanpole-mq/beanpole/internal/test/exectest"
	"github.com/beanpole-mq/beanpole/internal/test/freeport"
)

var withPrometheus = flag.Bool("contrib.prometheus", false, "run a Prometheus beside a server under load, and ask it for all that the dashboard shows")

// patience is the time limit until Prometheus has data for each expression.
const patience = 5 * time.Minute

// TestPrometheus evaluates every expression of the dashboard in a Prometheus server that
// scrapes a busy server. Each must return data.
func TestPrometheus(t *testing.T) {
	if !*withPrometheus {
		t.Skip("runs only with -contrib.prometheus")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ca := localca.New(t)
	addr, pages := serve(t, ca)
	opt := &client.Options{TLS: &tls.Config{RootCAs: ca.Pool()}}
	stranger := http.Client{Transport: &http.Transport{TLSClientConfig: opt.TLS}}
	api := scrape(t, ca, pages)
	left := expressions(t)
	defer func() {
		for what, expr := range left {
			_, err := hasData(t.Context(), api, expr)
			t.Errorf("%s: no data: %s (%v)", what, expr, err)
		}
	}()
	for len(left) > 0 {
		work(ctx, t, addr, opt)
		if answer, err := stranger.Get("https://" + pages + "/api/v1/tubes"); err == nil { // without a token
			answer.Body.Close()
		}
		for what, expr := range left {
			if ok, err := hasData(ctx, api, expr); err == nil && ok { // Prometheus might still start
				delete(left, what)
			}
		}
	}
}

// token belongs to the identity prometheus.
const token = "TOKEN-prometheus-0123456789"

// serve starts a server with a journal, TLS and the identity of doc/metrics.md. It
// returns its address and its admin API's address.
func serve(t *testing.T, ca *localca.CA) (addr, pages string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "beanpole")
	if err := exectest.Build(program); err != nil {
		t.Fatal(err)
	}
	cert, key := ca.Issue("server", time.Now().Add(time.Hour))
	config := filepath.Join(t.TempDir(), "beanpole.toml")
	text := strings.Replace(example(t, "toml"), "sha256:...", fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(token))), 1) +
		"[[rule]]\nidentities = [\"*\"]\ntubes = [\"*\"]\nallow = [\"all\"]\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, program, "--config", config, "-p", "0", "--admin", "127.0.0.1:0", "-b", t.TempDir(), "--max-memory", "100000000",
		"--tls-cert", cert, "--tls-key", key)
	m, err := p.Await(`(?s)admin API" address=(\S+).*listening address=(\S+)`)
	if err != nil {
		t.Fatal(err)
	}
	return m[2], m[1]
}

// example returns the example of doc/metrics.md in a language.
func example(t *testing.T, language string) string {
	t.Helper()
	_, text, _ := strings.Cut(read(t, "../doc/metrics.md"), "```"+language+"\n")
	text, _, ok := strings.Cut(text, "```")
	if !ok {
		t.Fatalf("doc/metrics.md has no example in %s", language)
	}
	return text
}

// scrape starts a Prometheus with the configuration of doc/metrics.md, and returns its
// address.
func scrape(t *testing.T, ca *localca.CA, pages string) (api string) {
	t.Helper()
	dir := t.TempDir()
	alerts, err := filepath.Abs(rules)
	if err != nil {
		t.Fatal(err)
	}
	config, tokenFile := filepath.Join(dir, "prometheus.yml"), filepath.Join(dir, "token")
	text := strings.NewReplacer("/etc/prometheus/queue-ca.crt", ca.File, "/etc/prometheus/queue.token", tokenFile,
		"/etc/prometheus/beanpole.rules.yml", alerts, "queue.example.com:11380", pages).Replace(example(t, "yaml"))
	text = "global: {scrape_interval: 1s}\n" + text
	for name, text := range map[string]string{config: text, tokenFile: token} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	port, err := freeport.Reserve() // Prometheus does not report a port that the system chose
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(port.Release)
	api = "127.0.0.1:" + port.String()
	start(t, "prometheus", "--config.file="+config, "--storage.tsdb.path="+t.TempDir(), "--web.listen-address="+api)
	return api
}

// start starts a program that stops when the test ends.
func start(t *testing.T, program string, args ...string) *exectest.Process {
	t.Helper()
	p, err := exectest.Start(exec.Command(program, args...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop() })
	return p
}

// work generates typical load for a second: jobs in each state and with each end, a
// paused tube, waiting workers, and a refused command.
func work(ctx context.Context, t *testing.T, addr string, opt *client.Options) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.Dial(ctx, addr, opt)
	must(err)
	defer c.Close()
	put := func(tube string, delay, ttr time.Duration) {
		_, err := c.Put(ctx, client.NewJob{Tube: tube, Body: []byte("hello"), Delay: delay, TTR: ttr})
		must(err)
	}
	for range 4 {
		put("mail", 0, time.Minute)
	}
	put("mail", time.Hour, time.Minute)
	put("backlog", 0, time.Minute)
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
			must(job.Bury(ctx))
		case 2:
			must(c.Release(ctx, job.ID, 0, time.Hour))
		case 3: // the job is held during the wait
		}
	}
	sleepy, err := client.Dial(ctx, addr, opt)
	must(err)
	defer sleepy.Close()
	put("slow", time.Hour, time.Minute) // keeps the tube and its counters
	put("slow", 0, time.Second)
	must(sleepy.WatchOnly(ctx, "slow"))
	_, err = sleepy.Reserve(ctx)
	must(err)
	must(c.WatchOnly(ctx, "slow"))
	job, err := c.Reserve(ctx) // when the TTR has expired
	must(err)
	must(job.Delete(ctx))
}

// hasData reports whether an expression has a numeric value.
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
