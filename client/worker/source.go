package worker

import (
	"context"
	"sync"

	"github.com/beanpole-mq/beanpole/client"
)

// A source is where a slot gets its jobs from. It holds one at a time.
type source interface {
	// reserve waits for a job.
	reserve(ctx context.Context) (*client.Job, error)

	// next deletes a job and waits for another. It calls deleted with what
	// became of the delete before it waits; the end of ctx ends only the wait.
	next(ctx context.Context, job *client.Job, deleted func(error)) (*client.Job, error)

	// giveUp closes the connection of a job, so that the server makes it ready again.
	giveUp(job *client.Job)

	// close closes all connections. It may be called at any time.
	close()
}

func (w *Worker) source() source {
	if len(w.opt.Servers) == 1 {
		return &oneServer{addr: w.opt.Servers[0], opt: &w.opt.Client, tubes: w.opt.Tubes}
	}
	servers, err := client.NewServers(w.opt.Servers, &client.PoolOptions{Options: w.opt.Client, MaxIdle: 1})
	if err != nil {
		panic(err) // New has tried it
	}
	return &manyServers{servers: servers, tubes: w.opt.Tubes}
}

// oneServer has one connection, on which it deletes a job and waits for the next
// in one round trip.
type oneServer struct {
	// Static.
	addr  string
	opt   *client.Options
	tubes []string

	mu     sync.Mutex
	conn   *client.Conn // nil: none
	closed bool
}

// connect returns the connection, a new one if need be.
func (s *oneServer) connect(ctx context.Context) (*client.Conn, error) {
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn != nil {
		return conn, nil
	}
	conn, err := client.Dial(ctx, s.addr, s.opt)
	if err != nil {
		return nil, err
	}
	if err := conn.WatchOnly(ctx, s.tubes...); err != nil {
		conn.Close()
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		conn.Close()
		return nil, client.ErrClosed
	}
	s.conn = conn
	return conn, nil
}

func (s *oneServer) reserve(ctx context.Context) (*client.Job, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	return conn.Reserve(ctx)
}

func (s *oneServer) next(ctx context.Context, job *client.Job, deleted func(error)) (*client.Job, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		deleted(job.Delete(context.WithoutCancel(ctx)))
		return nil, err
	}
	return conn.DeleteAndReserve(ctx, job.ID, deleted)
}

func (s *oneServer) giveUp(*client.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

func (s *oneServer) close() {
	s.giveUp(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
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

func (s *manyServers) giveUp(job *client.Job) { job.Abandon() }

func (s *manyServers) close() { s.servers.Close() }
