// Command console measures the web console of a server with 10,000 tubes and 1,000,000 jobs, while
// clients use other tubes: how long its pages take and what they weigh, what ten viewers cost the
// clients, and how long a search in all bodies takes. It prints tables in Markdown.
//
//	console BEANPOLE
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/beanpole-mq/beanpole/internal/bench"
)

var (
	tubes  = flag.Int("tubes", 10_000, "`N`, with jobs")
	jobs   = flag.Int("jobs", 1_000_000, "`N`, in all tubes together")
	views  = flag.Int("views", 200, "ask for each page `N` times")
	lasts  = flag.Duration("lasts", 10*time.Second, "measure clients for this `TIME` each")
	people = flag.Int("viewers", 10, "`N` viewers that look at live pages")
)

func main() {
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: console [options] BEANPOLE")
		os.Exit(2)
	}
	if err := run(context.Background(), flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, beanpole string) error {
	dir, err := os.MkdirTemp("", "console")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server := bench.Server{Command: []string{beanpole, "-l", "127.0.0.1", "-p", "{port}", "--admin", "unix:{dir}/admin"}}
	p, err := server.Start(ctx, dir)
	if err != nil {
		return err
	}
	defer p.Stop()
	if err := fill(p.Addr, *tubes, *jobs); err != nil {
		return err
	}
	s := &site{http.Client{Transport: &http.Transport{
		DisableCompression: true, // it is weighed as it comes
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "admin"))
		},
	}}}
	for _, print := range []func(context.Context, *site, string) error{pages, viewers, search} {
		if err := print(ctx, s, p.Addr); err != nil {
			return err
		}
	}
	return nil
}

// A site is the admin listener of the server.
type site struct{ http.Client }

// get asks for a page, compressed, and returns how long it is.
func (s *site) get(ctx context.Context, path string, body func(io.Reader) error) (size int64, err error) {
	r, err := http.NewRequestWithContext(ctx, "GET", "http://localhost"+path, nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Accept-Encoding", "gzip")
	answer, err := s.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", path, answer.Status)
	}
	if body != nil {
		return 0, body(answer.Body)
	}
	return io.Copy(io.Discard, answer.Body)
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(time.Minute/time.Microsecond), 3)
}

// pages asks for each page many times, one after the other, while clients use the queue.
func pages(ctx context.Context, s *site, addr string) error {
	fmt.Printf("| page | compressed, kB | p50, ms | p99, ms |\n|---|--:|--:|--:|\n")
	stop := observe(addr)
	defer stop()
	for _, page := range []struct{ name, path string }{
		{"overview", ""}, {"tubes, most ready first", "tubes"}, {"tubes, problems first", "tubes?sort=-trouble"}, {"tubes by a pattern", "tubes?q=tenant-7*"},
		{"a tube", "tube/tenant-7"}, {"a job", "job/77"}, {"connections", "connections"}, {"activity", "activity"}, {"server", "server"},
	} {
		h := newHistogram()
		var size int64
		for range *views {
			began := time.Now()
			n, err := s.get(ctx, "/console/"+page.path, nil)
			if err != nil {
				return err
			}
			h.RecordValue(time.Since(began).Microseconds())
			size = n
		}
		fmt.Printf("| %s | %.1f | %.1f | %.1f |\n", page.name, float64(size)/1000, float64(h.ValueAtQuantile(50))/1000, float64(h.ValueAtQuantile(99))/1000)
	}
	fmt.Println()
	return nil
}

// viewers measures the clients while nobody looks, and while some look at live pages; three times
// each, in turn.
func viewers(ctx context.Context, s *site, addr string) error {
	alone, watched := newHistogram(), newHistogram()
	for range 3 {
		stop := observe(addr)
		time.Sleep(*lasts / 3)
		alone.Merge(stop())
		ctx, cancel := context.WithCancel(ctx)
		for i := range *people {
			view := []string{"/console/", "/console/tubes", "/console/tubes%3Fsort=-trouble", "/console/tube/tenant-7"}[i%4]
			go s.get(ctx, "/console/events?view="+view, nil)
		}
		stop = observe(addr)
		time.Sleep(*lasts / 3)
		watched.Merge(stop())
		cancel()
	}
	fmt.Printf("| commands of 8 clients | p50, ms | p99, ms |\n|---|--:|--:|\n")
	for _, row := range []struct {
		name string
		h    *hdrhistogram.Histogram
	}{{"nobody looks", alone}, {fmt.Sprintf("%d live viewers", *people), watched}} {
		fmt.Printf("| %s | %.2f | %.2f |\n", row.name, float64(row.h.ValueAtQuantile(50))/1000, float64(row.h.ValueAtQuantile(99))/1000)
	}
	fmt.Println()
	return nil
}

// search looks for the last job of all, and notes when the first answer and when the job was there.
func search(ctx context.Context, s *site, addr string) error {
	fmt.Printf("| search in all bodies | first answer, s | all, s | clients' p99 meanwhile, ms |\n|---|--:|--:|--:|\n")
	for _, one := range []struct{ name, query string }{
		{"text", "text=nowhere"}, {"regular expression", "regexp=user%5B0-9%5D%2B%24"}, {"JSON pointer", "pointer=/n&equals=-1"},
	} {
		stop := observe(addr)
		began := time.Now()
		var first, all time.Duration
		for cursor := ""; ; {
			var page struct{ Next string }
			_, err := s.get(ctx, "/api/v1/search?"+one.query+"&cursor="+cursor, func(r io.Reader) error { return json.NewDecoder(r).Decode(&page) })
			if err != nil {
				return err
			}
			if all = time.Since(began); first == 0 {
				first = all
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		h := stop()
		fmt.Printf("| %s | %.2f | %.2f | %.2f |\n", one.name, first.Seconds(), all.Seconds(), float64(h.ValueAtQuantile(99))/1000)
	}
	return nil
}
