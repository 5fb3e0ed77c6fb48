package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
	"github.com/beanpole-mq/beanpole/client/worker"
	"github.com/beanpole-mq/beanpole/internal/test/conformance"
)

// Workers start and stop at random times, on real sockets. Each job is handled, and no
// deleted job is handled again.
func TestStorm(t *testing.T) {
	t.Run("beanpole", func(t *testing.T) { storm(t, beanpoletest.NewServer(t).Addr) })
	t.Run("beanstalkd", func(t *testing.T) { storm(t, conformance.Beanstalkd(t)) })
}

func storm(t *testing.T, addr string) {
	const jobs, rounds = 2000, 30
	c, err := client.Dial(t.Context(), addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	put := make([]client.NewJob, jobs)
	for i := range put {
		put[i].Body = fmt.Append(nil, i)
	}
	if _, err := c.PutMany(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	deleted := make(map[uint64]int)
	for round := range rounds {
		ctx, stop := context.WithCancel(t.Context())
		last := round == rounds-1
		quota := rand.N(jobs / rounds)
		w, err := worker.New(func(_ context.Context, job *worker.Job) error { return nil }, &worker.Options{
			Servers:     []string{addr},
			Concurrency: 1 + rand.N(20),
			Hooks: worker.Hooks{Finish: func(_ context.Context, job *worker.Job, o worker.Outcome) {
				mu.Lock()
				defer mu.Unlock()
				if o.Action != worker.Deleted {
					t.Errorf("job %d: %+v", job.ID, o)
				}
				deleted[job.ID]++
				if quota--; quota <= 0 && !last || len(deleted) == jobs {
					stop()
				}
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
		stop()
	}
	if len(deleted) != jobs {
		t.Errorf("%d jobs were deleted, want %d", len(deleted), jobs)
	}
	for id, n := range deleted {
		if n != 1 {
			t.Errorf("job %d was deleted %d times", id, n)
		}
	}
}
