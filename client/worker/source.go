package worker

import (
	"context"

	"github.com/beanpole-mq/beanpole/client"
)

// A source is where a slot gets its jobs from. It holds one at a time.
type source interface {
	// reserve waits for a job.
	reserve(ctx context.Context) (*client.Job, error)

	// next deletes a job and waits for another. It calls deleted with what
	// became of the delete before it waits; the end of ctx ends only the wait.
	next(ctx context.Context, job *client.Job, deleted func(error)) (*client.Job, error)

	// finished is called for a job that has ended otherwise: it is released, buried or lost.
	finished()

	// giveUp is finished for a job that is still reserved. Its connection is closed as soon as no other job needs it, so
	// that the server makes it ready again.
	giveUp(job *client.Job)

	// close closes all connections. It may be called at any time.
	close()
}

// sources returns where each slot gets its jobs from.
func (w *Worker) sources() []source {
	all := make([]source, w.opt.Concurrency)
	h := &hub{addr: w.opt.Servers[0], opt: &w.opt.Client, tubes: w.opt.Tubes, seats: len(all)}
	for i := range all {
		if len(w.opt.Servers) == 1 {
			all[i] = &seat{hub: h, ch: make(chan struct{}, 1)}
			continue
		}
		servers, err := client.NewServers(w.opt.Servers, &client.PoolOptions{Options: w.opt.Client, MaxIdle: 1})
		if err != nil {
			panic(err) // New has tried it
		}
		all[i] = &manyServers{servers: servers, tubes: w.opt.Tubes}
	}
	return all
}

// manyServers takes jobs from several servers.
type manyServers struct {
	servers *client.Servers
	tubes   []string
}

func (s *manyServers) reserve(ctx context.Context) (*client.Job, error) {
	return s.servers.Reserve(ctx, s.tubes...)
}

func (s *manyServers) next(ctx context.Context, job *client.Job, deleted func(error)) (*client.Job, error) {
	err := job.Delete(context.WithoutCancel(ctx))
	if err != nil {
		job.Abandon()
	}
	deleted(err)
	return s.servers.Reserve(ctx, s.tubes...)
}

func (s *manyServers) finished() {}

func (s *manyServers) giveUp(job *client.Job) { job.Abandon() }

func (s *manyServers) close() { s.servers.Close() }
