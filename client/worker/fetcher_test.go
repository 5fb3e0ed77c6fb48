package worker_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/worker"
)

// A worker uses one connection to reserve a batch of jobs for its free slots. The batch
// contains the details of the jobs, so the worker needs no further commands.
func TestBatches(t *testing.T) {
	bubble(t, func(b *bench) {
		for range 100 {
			b.put(client.NewJob{Tube: "mail", Priority: new(uint32(7)), TTR: time.Hour})
		}
		time.Sleep(3 * time.Second)
		var running atomic.Int32
		let := make(chan bool)
		stop := b.run(func(_ context.Context, job *worker.Job) error {
			running.Add(1)
			<-let
			running.Add(-1)
			if job.Tube != "mail" || job.Tries != 1 || job.Priority != 7 || job.Age < 2*time.Second {
				t.Errorf("%+v", job)
			}
			return nil
		}, worker.Options{Tubes: []string{"mail", "other"}, Concurrency: 8, CheckTries: true})
		for range 100 / 4 {
			synctest.Wait()
			if st, err := b.Conn.Stats(b.Context()); err != nil || st.JobsReserved != uint64(running.Load()) || st.JobsReserved != min(8, st.JobsReady+st.JobsReserved) {
				t.Errorf("%d run, %+v, %v", running.Load(), st, err)
			}
			for range 4 {
				let <- true
			}
		}
		b.gone()
		if n := b.dialed.Load(); n > 8 {
			t.Errorf("%d connections for 8 slots", n)
		}
		st, err := b.Conn.Stats(b.Context())
		if err != nil || st.Commands["stats-job"] != 0 || st.Commands["reserve-batch"] == 0 {
			t.Errorf("%+v, %v", st, err)
		}
		stop()
	})
}

// A swallowing connection breaks when it sends its first delete.
type swallowing struct{ net.Conn }

func (c swallowing) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("delete ")) {
		c.Close()
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// If a connection is lost with an unsent delete, the delete is repeated. The job is
// handled only once.
func TestDeleteAgain(t *testing.T) {
	bubble(t, func(b *bench) {
		dialed := 0
		var handled atomic.Int32
		stop := b.run(func(context.Context, *worker.Job) error { handled.Add(1); time.Sleep(time.Second); return nil }, worker.Options{
			Concurrency: 3,
			Client: client.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				time.Sleep(time.Millisecond) // until the server notices the loss
				nc, err := b.srv.Dial(ctx, network, addr)
				if dialed++; dialed == 1 {
					nc = swallowing{nc}
				}
				return nc, err
			}},
		})
		time.Sleep(time.Minute)
		for range 3 {
			b.put(client.NewJob{})
		}
		time.Sleep(time.Minute)
		b.wantActions(worker.Deleted, worker.Deleted, worker.Deleted)
		if b.gone(); handled.Load() != 3 {
			t.Errorf("%d jobs were handled, want 3", handled.Load())
		}
		stop()
	})
}

// If each job needs a command, a worker requests more jobs as long as all its requests
// find jobs. If jobs arrive one at a time, it sends few additional requests.
func TestWithoutBatches(t *testing.T) {
	bubble(t, func(b *bench) {
		opt := worker.Options{Concurrency: 8, Client: b.without("caps")}
		stop := b.run(func(context.Context, *worker.Job) error { time.Sleep(time.Second); return nil }, opt)
		reserves := func() uint64 {
			b.Helper()
			synctest.Wait()
			st, err := b.Conn.Stats(b.Context())
			if err != nil || st.Commands["reserve-batch"] != 0 {
				t.Fatalf("%+v, %v", st, err)
			}
			return st.Commands["reserve"] + st.Commands["reserve-with-timeout"]
		}
		for range 50 {
			b.put(client.NewJob{})
			time.Sleep(time.Minute)
		}
		if n := reserves(); n > 150 {
			t.Errorf("%d reserves for 50 single jobs", n)
		}
		for range 80 {
			b.put(client.NewJob{})
		}
		began := time.Now()
		for b.srvReady() > 0 {
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("8 handlers took %v for 80 jobs of a second", took)
		}
		time.Sleep(10 * time.Second)
		b.gone()
		stop()
	})
}

func (b *bench) srvReady() uint64 {
	b.Helper()
	synctest.Wait()
	st, err := b.Conn.Stats(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return st.JobsReady
}

// A long job does not block the slots of other jobs, and a single new job goes to a free
// slot at once. The worker keeps touching the long job.
func TestLongJobAmongOthers(t *testing.T) {
	bubble(t, func(b *bench) {
		var handled atomic.Int32
		stop := b.run(func(_ context.Context, job *worker.Job) error {
			if string(job.Body) == "long" {
				time.Sleep(time.Hour)
			}
			handled.Add(1)
			return nil
		}, worker.Options{Concurrency: 3})
		b.put(client.NewJob{Body: []byte("long"), TTR: 2 * time.Second})
		b.put(client.NewJob{Body: []byte("long"), TTR: 2 * time.Second})
		for n := range int32(50) {
			b.put(client.NewJob{TTR: time.Second})
			time.Sleep(time.Minute)
			if synctest.Wait(); handled.Load() < n+1 {
				t.Errorf("%d of %d jobs", handled.Load(), n+1)
			}
		}
		time.Sleep(time.Hour)
		b.gone()
		if st, err := b.Conn.Stats(b.Context()); err != nil || st.JobTimeouts != 0 {
			t.Errorf("%+v, %v", st, err)
		}
		stop()
		if got := len(b.outcomes); got != 52 {
			t.Errorf("%d outcomes", got)
		}
	})
}

// If a job cannot be released, the other jobs of its connection continue. The connection
// is closed after the last of them.
func TestGiveUpAmongOthers(t *testing.T) {
	bubble(t, func(b *bench) {
		for range 4 {
			b.put(client.NewJob{TTR: 3 * time.Hour})
		}
		var failed atomic.Bool
		stop := b.run(func(context.Context, *worker.Job) error {
			if failed.CompareAndSwap(false, true) {
				return errors.New("failed")
			}
			time.Sleep(time.Hour)
			return nil
		}, worker.Options{Concurrency: 4, Client: b.without("release ")})
		time.Sleep(time.Minute)
		synctest.Wait()
		if st, err := b.Conn.Stats(b.Context()); err != nil || st.JobsReserved != 4 {
			t.Errorf("%d are reserved, %v", st.JobsReserved, err)
		}
		time.Sleep(3 * time.Hour)
		b.gone()
		stop()
		deleted, lost := 0, 0
		for _, o := range b.outcomes {
			switch o.Action {
			case worker.Deleted:
				deleted++
			case worker.Lost:
				lost++
			}
		}
		if deleted != 4 || lost != 1 {
			t.Errorf("%d deleted, %d lost: %+v", deleted, lost, b.outcomes)
		}
	})
}
