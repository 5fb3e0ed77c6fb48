// Command console measures the web console of a server with 10,000 tubes and 1,000,000 jobs, while
// clients use another tube: how long its pages take and what they weigh, what ten viewers cost the
// clients, how long a search in all bodies takes, and what the console costs when nobody looks. It prints tables in Markdown.
//
//	console BEANPOLE
//
// If beanstalkd is installed, it is asked for what beanstalk_console asks it for its page of all tubes: a list of them, and the
// statistics of each. That is what such a page takes at least, without PHP.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/beanpole-mq/beanpole/bench"
)

// options say how much is measured.
type options struct {
	tubes, jobs int // in all tubes together
	views       int // of each page
	viewers     int
	lasts       time.Duration // how long clients are measured each, and servers without any
}

func main() {
	var opt options
	flag.IntVar(&opt.tubes, "tubes", 10_000, "`N` tubes with jobs")
	flag.IntVar(&opt.jobs, "jobs", 1_000_000, "`N` jobs, in all tubes together")
	flag.IntVar(&opt.views, "views", 200, "ask for each page `N` times")
	flag.DurationVar(&opt.lasts, "lasts", 4*time.Second, "measure clients for this `TIME` each, and servers without any")
	flag.IntVar(&opt.viewers, "viewers", 10, "`N` viewers that look at live pages")
	steady := flag.String(bench.SteadyFlag, "", "only be clients of the server at this `ADDRESS`: the process whose latency is measured")
	flag.Parse()
	if *steady != "" {
		if err := bench.ServeSteady(context.Background(), *steady); err != nil {
			fmt.Fprintln(os.Stderr, "console:", err)
			os.Exit(1)
		}
		return
	}
	if flag.NArg() != 1 || opt.tubes < 1 || opt.jobs < opt.tubes || opt.views < 1 || opt.lasts <= 0 || opt.viewers < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := opt.run(context.Background(), os.Stdout, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
}

func (opt *options) run(ctx context.Context, w io.Writer, beanpole string) error {
	s, err := opt.start(ctx, beanpole)
	if err != nil {
		return err
	}
	defer s.stop()
	other, err := opt.start(ctx, beanpole)
	if err != nil {
		return err
	}
	defer other.stop()
	if err := opt.pages(ctx, w, s); err != nil {
		return err
	}
	if err := opt.besides(ctx, w); err != nil {
		return err
	}
	if err := opt.watched(ctx, w, s, other); err != nil {
		return err
	}
	if err := opt.searches(ctx, w, s); err != nil {
		return err
	}
	return opt.idle(ctx, w, beanpole)
}

// A site is a server with its admin listener.
type site struct {
	http.Client
	*bench.Process
	stop func()
}

// start starts a server, and puts the jobs.
func (opt *options) start(ctx context.Context, beanpole string, args ...string) (*site, error) {
	s, err := startEmpty(ctx, append([]string{beanpole, "-l", "127.0.0.1", "-p", "{port}", "--admin", "unix:{dir}/admin"}, args...)...)
	if err != nil {
		return nil, err
	}
	if err := fill(ctx, s.Addr, opt.tubes, opt.jobs); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func startEmpty(ctx context.Context, command ...string) (*site, error) {
	dir, err := os.MkdirTemp("", "console")
	if err != nil {
		return nil, err
	}
	server := bench.Server{Command: command}
	p, err := server.Start(ctx, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s := &site{Process: p, stop: func() {
		p.Stop()
		os.RemoveAll(dir)
	}}
	s.Transport = &http.Transport{
		DisableCompression: true, // it is weighed as it comes
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "admin"))
		},
	}
	return s, nil
}

// get asks for a page, compressed, and hands it to a function.
func (s *site) get(ctx context.Context, path string, body func(io.Reader) error) error {
	r, err := http.NewRequestWithContext(ctx, "GET", "http://localhost"+path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept-Encoding", "gzip")
	answer, err := s.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, answer.Status)
	}
	return body(answer.Body)
}

// beanstalkd is the real one, or empty if it is not installed.
func beanstalkd() string {
	path, err := exec.LookPath("beanstalkd")
	if err != nil {
		return ""
	}
	return path
}
