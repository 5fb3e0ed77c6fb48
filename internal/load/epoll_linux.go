package load

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/beanpole-mq/beanpole/internal/epoll"
)

// epollClient is the client of one thread, or of Options.Threads threads among
// which the connections are divided. Each has one goroutine; when one fails, the
// others leave within idleWait.
func (r *run) epollClient(conns []*conn) client {
	loops := make([]*loop, r.opt.Threads)
	start := func(i int) int { // of loop i; a crew stays in one
		return i * r.opt.Connections / len(loops) * len(conns) / r.opt.Connections
	}
	for i := range loops {
		loops[i] = &loop{run: r, first: start(i), conns: conns[start(i):start(i+1)]}
		hist := r.histogram()
		for _, c := range loops[i].conns {
			c.s.tally.hist = hist
		}
	}
	return func(ctx context.Context) error {
		defer closeAll(conns) // those which no loop took over
		g, ctx := errgroup.WithContext(ctx)
		stop := context.AfterFunc(ctx, func() { r.setPhase(aborted) })
		defer stop()
		for _, l := range loops {
			g.Go(func() error { return r.fail(ctx, l.work(ctx)) })
		}
		return g.Wait()
	}
}

// A loop drives its connections from one thread. Owned by its goroutine.
type loop struct {
	*run
	first int // index of its first connection among those of the run
	conns []*conn
	poll  *epoll.Poller
	socks []sessionSock // in the order of conns
	open  int           // socks that are not over
}

type sessionSock struct {
	sock
	s *session
}

func (l *loop) work(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	poll, err := epoll.New()
	if err != nil {
		return err
	}
	defer poll.Close()
	l.poll = poll
	defer l.closeSocks()
	if err := l.adopt(); err != nil {
		return err
	}
	for i := range l.socks {
		if err := l.proceed(&l.socks[i], l.now(), l.inPhase()); err != nil {
			return err
		}
	}
	for l.open > 0 {
		events := l.poll.Wait(idleWait)
		ph := l.inPhase()
		if ph == aborted {
			return context.Cause(ctx)
		}
		for i := range events {
			if err := l.handle(&l.socks[events[i].Index], events[i].Events, ph); err != nil {
				return err
			}
		}
	}
	return nil
}

// adopt takes the sockets away from the Go runtime and registers them.
func (l *loop) adopt() error {
	l.socks = make([]sessionSock, 0, len(l.conns)) // never grows: pointers into it are kept
	for i, c := range l.conns {
		fd, err := epoll.Take(c.Conn)
		if err != nil {
			return err
		}
		l.socks = append(l.socks, sessionSock{sock: sock{Socket: fd, index: i}, s: c.s})
		l.open++
		if err := l.poll.Add(fd, i, epoll.Readable); err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) closeSocks() {
	for i := range l.socks {
		l.socks[i].close()
	}
}

// handle reads once and answers at once. Another read would most often bring
// nothing: a closed loop has sent no new commands meanwhile.
func (l *loop) handle(k *sessionSock, events epoll.Events, ph phase) error {
	if k.closed { // another of its crew ended it in this round
		return nil
	}
	if events == epoll.Writable {
		return l.proceed(k, l.now(), ph)
	}
	n, err := k.read(k.s.space())
	if err != nil {
		return err
	}
	now := l.now()
	k.s.received(n)
	if err := k.s.replies(now, ph); err != nil {
		return err
	}
	return l.proceed(k, now, ph)
}

// proceed sends what k has to send, and the producers that it has freed, then
// closes those that are over.
func (l *loop) proceed(k *sessionSock, now int64, ph phase) error {
	if err := l.send(k, now, ph); err != nil {
		return err
	}
	if c := k.s.crew; c != nil {
		return l.proceedCrew(c, now, ph)
	}
	l.settle(k)
	return nil
}

func (l *loop) proceedCrew(c *crew, now int64, ph phase) error {
	for {
		i, ok := c.nextFreed()
		if !ok {
			break
		}
		if err := l.send(&l.socks[i-l.first], now, ph); err != nil {
			return err
		}
	}
	if c.over() {
		socks := l.socks[c.first-l.first:]
		for i := range c.size {
			l.settle(&socks[i])
		}
	}
	return nil
}

func (l *loop) send(k *sessionSock, now int64, ph phase) error {
	if k.closed {
		return nil
	}
	s := k.s
	s.fill(now, ph)
	sent, err := k.write(l.poll, s.out)
	if err != nil {
		return err
	}
	s.out = s.out[:copy(s.out, s.out[sent:])]
	return nil
}

func (l *loop) settle(k *sessionSock) {
	if !k.closed && k.s.finished() {
		k.close()
		l.open--
	}
}
