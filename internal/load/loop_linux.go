package load

import (
	"context"
	"io"
	"net"
	"os"
	"runtime"
	"sync"

	"github.com/beanpole-mq/beanpole/internal/epoll"
)

// A loop moves the bytes of connections between sockets and peers, from one
// thread. It reads once from each socket that has something, and writes once.
type loop struct {
	poll *epoll.Poller

	mu struct {
		sync.Mutex
		joining []*link
		stopped bool // the poller is closed
	}

	// Owned by run.
	links []*link // by index; nil: free
	free  []int   // indexes
	woken []*link // have something to write, or are over, without having read
}

// A link is a connection of a loop, and its peer.
type link struct {
	peer
	conn  net.Conn // until the loop takes its socket
	sock  epoll.Socket
	index int
	full  bool // the socket took only a part of the last write
	woken bool // in loop.woken
}

func newLoop() (*loop, error) {
	poll, err := epoll.New()
	return &loop{poll: poll}, err
}

// join hands over a connection, also while run runs.
func (l *loop) join(nc net.Conn, p peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.stopped {
		nc.Close()
		return
	}
	l.mu.joining = append(l.mu.joining, &link{conn: nc, peer: p})
	l.poll.Wake()
}

// run returns when ctx is done, or with the first error of a peer's ended. No
// connection is open then.
func (l *loop) run(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer l.stop()
	defer context.AfterFunc(ctx, l.wake)()
	for ctx.Err() == nil {
		if err := l.addJoined(); err != nil {
			return err
		}
		for _, ev := range l.poll.Wait(-1) {
			k := l.links[ev.Index]
			if k == nil { // was closed in this round
				continue
			}
			if err := l.handle(k, ev.Events); err != nil {
				return err
			}
		}
	}
	return nil
}

// wake makes run look at its context.
func (l *loop) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mu.stopped {
		l.poll.Wake()
	}
}

// stop closes everything.
func (l *loop) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.mu.joining {
		k.conn.Close()
	}
	for _, k := range l.links {
		if k != nil {
			k.sock.Close()
		}
	}
	l.poll.Close()
	l.mu.stopped = true
}

// addJoined begins with the connections that have joined.
func (l *loop) addJoined() error {
	l.mu.Lock()
	joined := l.mu.joining
	l.mu.joining = nil
	l.mu.Unlock()
	for i, k := range joined {
		if err := l.begin(k); err != nil {
			for _, k := range joined[i+1:] {
				k.conn.Close()
			}
			return err
		}
	}
	return nil
}

func (l *loop) begin(k *link) (err error) {
	if k.sock, err = epoll.Take(k.conn); err != nil {
		k.conn.Close()
		return k.ended(err)
	}
	if n := len(l.free); n > 0 {
		k.index = l.free[n-1]
		l.free = l.free[:n-1]
		l.links[k.index] = k
	} else {
		k.index = len(l.links)
		l.links = append(l.links, k)
	}
	if err := l.poll.Add(k.sock, k.index, epoll.Readable); err != nil {
		return l.end(k, err)
	}
	k.attach(func() {
		if !k.woken {
			k.woken = true
			l.woken = append(l.woken, k)
		}
	})
	return l.send(k)
}

// handle reads once and answers at once. Another read would most often bring
// nothing: a closed loop has sent no new commands meanwhile.
func (l *loop) handle(k *link, events epoll.Events) error {
	if events != epoll.Writable {
		space := k.space()
		if len(space) == 0 {
			return l.end(k, errAhead)
		}
		n, err := k.sock.Read(space)
		switch err {
		case nil:
			err = k.received(n)
		case epoll.ErrWouldBlock:
			err = nil
		case io.EOF:
			err = errHungUp
		default:
			err = os.NewSyscallError("read", err)
		}
		if err != nil {
			return l.end(k, err)
		}
	}
	if err := l.send(k); err != nil {
		return err
	}
	for len(l.woken) > 0 { // to write to one of them may wake more
		k := l.woken[len(l.woken)-1]
		l.woken = l.woken[:len(l.woken)-1]
		k.woken = false
		if l.links[k.index] == k {
			if err := l.send(k); err != nil {
				return err
			}
		}
	}
	return nil
}

// send writes what is pending, as far as the socket takes it, and closes what is
// over.
func (l *loop) send(k *link) error {
	out, n := k.pending(), 0
	if len(out) > 0 {
		var err error
		if n, err = k.sock.Write(out); err != nil {
			return l.end(k, os.NewSyscallError("write", err))
		}
		k.wrote(n)
	}
	if full := n < len(out); full != k.full {
		k.full = full
		events := epoll.Readable
		if full {
			events |= epoll.Writable
		}
		if err := l.poll.Modify(k.sock, k.index, events); err != nil {
			return l.end(k, err)
		}
	}
	if !k.full && k.done() {
		return l.end(k, nil)
	}
	return nil
}

// end closes a connection. What its peer says of that is returned.
func (l *loop) end(k *link, err error) error {
	k.sock.Close()
	l.links[k.index] = nil
	l.free = append(l.free, k.index)
	return k.ended(err)
}
