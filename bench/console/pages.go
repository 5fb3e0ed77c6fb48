package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/bench"
	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// clients lets clients put, reserve and delete, a command each millisecond, until the function that
// it returns is called. That returns what they have met with.
func clients(ctx context.Context, s *site) (stop func() (load.Result, error), err error) {
	c, err := bench.StartSteady(ctx, s.Addr)
	if err != nil {
		return nil, err
	}
	if err := c.Begin(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return func() (load.Result, error) {
		r, err := c.End()
		return r, errors.Join(err, c.Close())
	}, nil
}

// onePage is a page of the console.
type onePage struct{ name, path string }

var pages = []onePage{
	{"overview", ""}, {"tubes, most ready first", "tubes"}, {"tubes, problems first", "tubes?sort=-attention"}, {"tubes by a pattern", "tubes?q=tenant-7*"},
	{"a tube", "tube/tenant-7"}, {"a job", "job/77"}, {"connections", "connections"}, {"activity", "activity"}, {"server", "server"},
}

// pages asks for each page many times, one after the other, while clients use the queue.
func (opt *options) pages(ctx context.Context, w io.Writer, s *site) error {
	fmt.Fprint(w, "| page | compressed, kB | p50 | p99 |\n|---|--:|--:|--:|\n")
	stop, err := clients(ctx, s)
	if err != nil {
		return err
	}
	for _, p := range pages {
		var size int64
		took, err := times(opt.views, func() error {
			return s.get(ctx, "/console/"+p.path, func(r io.Reader) (err error) {
				size, err = io.Copy(io.Discard, r)
				return err
			})
		})
		if err != nil {
			stop()
			return err
		}
		fmt.Fprintf(w, "| %s | %.1f | %s | %s |\n", p.name, float64(size)/1000, percentile(took, 50), percentile(took, 99))
	}
	fmt.Fprintln(w)
	_, err = stop()
	return err
}

// times does something n times, and returns how long that took, the shortest first.
func times(n int, do func() error) ([]time.Duration, error) {
	took := make([]time.Duration, n)
	for i := range took {
		began := time.Now()
		if err := do(); err != nil {
			return nil, err
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took, nil
}

// percentile returns what so many of 100 times do not exceed, for people.
func percentile(took []time.Duration, p int) string {
	return load.Nanoseconds.Format(float64(took[max(0, (len(took)*p+99)/100-1)]))
}

// besides measures what beanstalk_console asks a beanstalkd with as many tubes. Each has one job: the statistics
// count none, and beanstalkd looks at all tubes whenever one is put.
func (opt *options) besides(ctx context.Context, w io.Writer) error {
	program := beanstalkd()
	if program == "" {
		return nil
	}
	s, err := startEmpty(ctx, program, "-l", "127.0.0.1", "-p", "{port}")
	if err != nil {
		return err
	}
	defer s.stop()
	if err := fill(ctx, s.Addr, opt.tubes, opt.tubes); err != nil {
		return err
	}
	d, err := load.Dial(ctx, s.Addr)
	if err != nil {
		return err
	}
	defer d.Close()
	took, err := times(3, func() error { // each takes long
		if _, err := d.Do(wire.AppendListTubes(nil), wire.OK); err != nil {
			return err
		}
		for i := range opt.tubes {
			if _, err := d.Do(wire.AppendStatsTubeCommand(nil, tubeName(i)), wire.OK); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "beanstalk_console asks beanstalkd for a list of its tubes and the statistics of each whenever it shows them. That alone, with as many tubes and no other client: %s.\n\n", percentile(took, 50))
	return nil
}

// views are what viewers look at.
var views = []string{"/console/", "/console/tubes", "/console/tubes%3Fsort=-attention", "/console/tube/tenant-7"}

// watched measures the clients while nobody looks, while some look at live pages, and while they look at those of
// another server on the same machine, which takes the same processors: in turn, seven times each.
func (opt *options) watched(ctx context.Context, w io.Writer, s, other *site) error {
	const rounds = 7
	rows := []struct {
		name string
		at   *site
		p50  []float64
		p99  []float64
	}{{name: "nobody looks"}, {name: fmt.Sprintf("%d live viewers of another server", opt.viewers), at: other}, {name: fmt.Sprintf("%d live viewers", opt.viewers), at: s}}
	for range rounds {
		for i := range rows {
			row := &rows[i]
			r, err := opt.beside(ctx, s, row.at)
			if err != nil {
				return fmt.Errorf("%s: %w", row.name, err)
			}
			row.p50, row.p99 = append(row.p50, float64(r.Latency.P50)), append(row.p99, float64(r.Latency.P99))
		}
	}
	fmt.Fprint(w, "| commands of 8 clients | p50 | p99 |\n|---|--:|--:|\n")
	for _, row := range rows {
		fmt.Fprintf(w, "| %s | %s | %s |\n", row.name, load.Nanoseconds.Format(bench.NewSpread(row.p50).Median), load.Nanoseconds.Format(bench.NewSpread(row.p99).Median))
	}
	ratios := make([]float64, rounds)
	for i := range ratios {
		ratios[i] = rows[2].p99[i] / rows[1].p99[i]
	}
	r := bench.NewSpread(ratios)
	fmt.Fprintf(w, "\np99 with viewers, to that with viewers of another server: %.2f (%.2f..%.2f).\n\n", r.Median, r.Min, r.Max)
	return nil
}

// beside measures clients of a server for a while, and meanwhile people look at one, if any.
func (opt *options) beside(ctx context.Context, s, watched *site) (r load.Result, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	looks := make(chan struct{})
	ended := make(chan error, opt.viewers)
	viewers := 0
	if watched != nil {
		viewers = opt.viewers
	}
	for i := range viewers {
		go func() { ended <- watched.watch(ctx, views[i%len(views)], func() { looks <- struct{}{} }) }()
	}
	for range viewers { // until all of them look
		select {
		case <-looks:
		case err := <-ended:
			return r, err
		}
	}
	stop, err := clients(ctx, s)
	if err != nil {
		return r, err
	}
	select {
	case err = <-ended:
	case <-time.After(opt.lasts):
	}
	r, stopped := stop()
	return r, cmp.Or(err, stopped)
}

// watch looks at a page until the context is done. It calls first when it has seen it.
func (s *site) watch(ctx context.Context, view string, first func()) error {
	return s.get(ctx, "/console/events?view="+view, func(r io.Reader) error {
		lines := bufio.NewReader(r)
		for events := 0; ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return fmt.Errorf("the stream of %s has ended: %w", view, err)
			}
			if strings.HasPrefix(line, "data: ") {
				if events++; events == 1 {
					first()
				}
			}
		}
	})
}

// searches looks for what is in no body, so in all of them, and notes when the first answer and when the last one was there.
func (opt *options) searches(ctx context.Context, w io.Writer, s *site) error {
	fmt.Fprint(w, "| search in all bodies | first answer | all | clients' p99 meanwhile |\n|---|--:|--:|--:|\n")
	for _, one := range []struct{ name, query string }{
		{"text", "q=nowhere"}, {"regular expression", "q=/user%5B0-9%5D%2B%24/"}, {"JSON pointer", "q=/n:-1"},
	} {
		stop, err := clients(ctx, s)
		if err != nil {
			return err
		}
		first, all, looked, err := s.search(ctx, one.query)
		r, stopped := stop()
		if err != nil {
			return err
		}
		if stopped != nil {
			return stopped
		}
		if looked < uint64(opt.jobs/opt.tubes*opt.tubes) {
			return fmt.Errorf("the search for a %s has looked at %d jobs only", one.name, looked)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", one.name, load.Nanoseconds.Format(float64(first)), load.Nanoseconds.Format(float64(all)), load.Nanoseconds.Format(float64(r.Latency.P99)))
	}
	fmt.Fprintln(w)
	return nil
}

// search asks for all pages of a search.
func (s *site) search(ctx context.Context, query string) (first, all time.Duration, looked uint64, err error) {
	began := time.Now()
	for cursor := ""; ; {
		var page struct {
			Next   string
			Looked uint64
		}
		err := s.get(ctx, "/api/v1/search?"+query+"&cursor="+cursor, func(r io.Reader) error { return json.NewDecoder(r).Decode(&page) })
		if err != nil {
			return 0, 0, 0, err
		}
		if all = time.Since(began); first == 0 {
			first = all
		}
		if cursor = page.Next; cursor == "" {
			return first, all, page.Looked, nil
		}
	}
}
