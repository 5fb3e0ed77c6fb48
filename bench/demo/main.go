// Command demo fills an empty server with the queue of a fictitious shop, and processes
// jobs until it is stopped. The pictures in doc show this queue. It is also useful for
// trying top and the console.
//
//	demo ADDR
//
// Some tubes need attention: reports wait for workers, of which there are none, and
// payments are declined and buried.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/worker"
)

// A tube describes the initial and later jobs of a tube.
type tube struct {
	name string
	body func(n int) string

	delayed, buried, ready int // initial numbers of jobs

	puts     float64 // average number per second, in waves
	burst    int     // additional jobs at once, every 90 seconds
	workers  int
	work     time.Duration // duration of the work on a job
	declined uint64        // one of this many jobs is buried; 0 means none
}

var tubes = []tube{
	{name: "mail", body: laravel("SendMail"), delayed: 120, puts: 4, workers: 4, work: 300 * time.Millisecond},
	{name: "mail.bulk", body: laravel("SendNewsletter"), puts: 28, burst: 500, workers: 7, work: 110 * time.Millisecond},
	{name: "billing", body: payment, puts: 2, workers: 2, work: 200 * time.Millisecond},
	{name: "billing.retry", body: payment, buried: 37, ready: 6, puts: 0.4, workers: 1, work: 400 * time.Millisecond, declined: 4},
	{name: "reports", body: report, ready: 900},
	{name: "webhooks", body: webhook, puts: 15, workers: 4, work: 150 * time.Millisecond},
	{name: "import.csv", body: rows, puts: 29, burst: 900, workers: 7, work: 100 * time.Millisecond},
	{name: "thumbnails", body: rows, puts: 9, burst: 1200, workers: 7, work: 120 * time.Millisecond},
	{name: "search.index", body: webhook, puts: 3, workers: 2, work: 80 * time.Millisecond},
	{name: "push", body: webhook, puts: 12, workers: 7, work: 90 * time.Millisecond},
	{name: "audit", body: rows, puts: 11, workers: 7, work: 70 * time.Millisecond},
	{name: "cleanup", body: laravel("PruneSessions"), puts: 6, workers: 2, work: 160 * time.Millisecond},
}

func laravel(class string) func(int) string {
	return func(n int) string {
		return fmt.Sprintf(`{"uuid":"0192f0c4-7a1e-7b3c-9d2e-%012x","displayName":"App\\Jobs\\%s","job":"Illuminate\\Queue\\CallQueuedHandler@call","maxTries":5,"timeout":60,"data":{"to":"user%d@example.com","template":"welcome","locale":"en"}}`, n*7919, class, n)
	}
}

func payment(n int) string {
	return fmt.Sprintf(`{"order":%d,"customer":"cus_%05d","amount":%d.%02d,"currency":"EUR","attempt":%d,"last_error":"card declined"}`, 48200+n, n*37%100000, 10+n%90, n%100, 1+n%4)
}

func report(n int) string {
	return fmt.Sprintf(`a:3:{s:6:"report";s:5:"sales";s:5:"month";s:7:"2026-%02d";s:5:"store";i:%d;}`, 1+n%12, 100+n%75)
}

func webhook(n int) string {
	return fmt.Sprintf(`{"url":"https://partner%d.example.com/hooks","event":"order.shipped","order":%d}`, n%9, 48200+n)
}

func rows(n int) string {
	return fmt.Sprintf("%d;2026-11-22;%s;%d.%02d;EUR", n, strings.Repeat("ABCDEFGH"[n%8:n%8+1], 6), n%400, n%100)
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: demo ADDR")
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, os.Args[1]); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run fills the queue, and then puts and processes jobs until the context ends.
func run(ctx context.Context, addr string) error {
	pool, err := client.NewPool(addr, nil)
	if err != nil {
		return err
	}
	defer pool.Close()
	for i := range tubes {
		if err := tubes[i].fill(ctx, pool); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range tubes {
		t := &tubes[i]
		if t.puts > 0 {
			g.Go(func() error { return t.produce(ctx, pool) })
		}
		if t.workers > 0 {
			w, err := worker.New(t.handle, &worker.Options{Servers: []string{addr}, Tubes: []string{t.name}, Concurrency: t.workers, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				return err
			}
			g.Go(func() error { return w.Run(ctx) })
		}
	}
	return g.Wait()
}

// put puts the nth job.
func (t *tube) put(ctx context.Context, pool *client.Pool, n int, delay time.Duration) error {
	_, err := pool.Put(ctx, client.NewJob{Tube: t.name, Body: []byte(t.body(n)), Delay: delay, TTR: time.Minute})
	return err
}

// fill puts the initial jobs, starting with the jobs to bury.
func (t *tube) fill(ctx context.Context, pool *client.Pool) error {
	for n := range t.buried + t.delayed + t.ready {
		delay := time.Duration(0)
		if n >= t.buried && n < t.buried+t.delayed {
			delay = time.Hour
		}
		if err := t.put(ctx, pool, n+1, delay); err != nil {
			return err
		}
		if n < t.buried {
			job, err := pool.Reserve(ctx, t.name)
			if err == nil {
				err = job.Bury(ctx)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// produce puts jobs in waves, and occasionally many at once.
func (t *tube) produce(ctx context.Context, pool *client.Pool) error {
	const step, burstEvery = 200 * time.Millisecond, 90 * time.Second
	ticks := time.NewTicker(step)
	defer ticks.Stop()
	begin, phase := time.Now(), float64(len(t.name))
	due := float64(t.burst) // due in the next tick
	n := 1000
	for bursts := 1; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticks.C:
		}
		since := time.Since(begin)
		due += t.puts * step.Seconds() * (1 + 0.6*math.Sin(phase+since.Seconds()/40))
		if since > time.Duration(bursts)*burstEvery+time.Duration(phase)*time.Second {
			bursts++
			due += float64(t.burst)
		}
		for ; due >= 1; due-- {
			n++
			if err := t.put(ctx, pool, n, 0); err != nil && !errors.Is(err, client.ErrOutOfMemory) { // continue despite errors
				return err
			}
		}
	}
}

// handle processes a job, which takes some time.
func (t *tube) handle(ctx context.Context, job *worker.Job) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(t.work):
	}
	if t.declined > 0 && job.ID%t.declined == 0 {
		return worker.Bury(errors.New("card declined"))
	}
	return nil
}
