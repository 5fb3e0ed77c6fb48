package load

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/server/epoll"
)

// A loop moves bytes between sockets and peers in one thread. It reads and writes each
// ready socket once.
type loop struct {
	poll *epoll.Poller

	listener epoll.Socket
	newPeer  func() peer // for accepted connections; nil without a listener

	links []*link // by index; nil if the index is free
	free  []int   // indexes
}

// A link is a connection of a loop with its peer.
type link struct {
	peer
	*buffers
	sock  epoll.Socket
	index int
	full  bool // whether the socket accepted only a part of the last write
}

// errHungUp means that the server closed a connection.
var errHungUp = errors.New("load: the server closed the connection")

// newLoop returns a loop. The caller must close it.
func newLoop() (*loop, error) {
	poll, err := epoll.New()
	if err != nil {
		return nil, err
	}
	return &loop{poll: poll}, nil
}

// close closes all connections.
func (l *loop) close() {
	for _, k := range l.links {
		if k != nil {
			k.sock.Close()
		}
	}
	if l.newPeer != nil {
		l.listener.Close()
	}
	l.poll.Close()
}

// connect takes ownership of a connection, and makes its peer start.
func (l *loop) connect(nc net.Conn, p peer) error {
	sock, err := epoll.Take(nc)
	if err != nil {
		return errors.Join(err, nc.Close())
	}
	return l.add(sock, p)
}

// listen takes ownership of a TCP listener, and starts to accept connections.
func (l *loop) listen(nl net.Listener, newPeer func() peer) error {
	sock, err := epoll.Take(nl)
	if err != nil {
		return errors.Join(err, nl.Close())
	}
	l.listener, l.newPeer = sock, newPeer
	return l.poll.Add(sock, epoll.Listeners, epoll.Readable)
}

// run returns when ctx ends, when no connection is left and none can be opened, or with
// the first error that a peer's ended returns.
func (l *loop) run(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	woken := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		l.poll.Wake()
		close(woken)
	})
	defer func() {
		if !cancel() {
			<-woken // the poller must not be closed earlier
		}
	}()
	for ctx.Err() == nil && (l.newPeer != nil || len(l.free) < len(l.links)) {
		for _, ev := range l.poll.Wait(-1) {
			if err := l.handle(ev); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *loop) handle(ev epoll.Event) error {
	if ev.Index == epoll.Listeners {
		return l.accept()
	}
	k := l.links[ev.Index]
	if k == nil { // it was closed in this round
		return nil
	}
	return l.serve(k, ev.Events)
}

// accept accepts all waiting clients.
func (l *loop) accept() error {
	for {
		sock, _, err := l.listener.Accept()
		switch err {
		case nil:
		case epoll.ErrWouldBlock, unix.ECONNABORTED, unix.EINTR:
			return nil
		default:
			return os.NewSyscallError("accept", err)
		}
		// Package net and the measured servers also set this option.
		if err := unix.SetsockoptInt(int(sock), unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			sock.Close()
			return os.NewSyscallError("setsockopt", err)
		}
		if err := l.add(sock, l.newPeer()); err != nil {
			return err
		}
	}
}

// add starts to serve a connection.
func (l *loop) add(sock epoll.Socket, p peer) error {
	k := &link{peer: p, buffers: p.bytes(), sock: sock, index: len(l.links)}
	if n := len(l.free); n > 0 {
		k.index = l.free[n-1]
		l.free = l.free[:n-1]
		l.links[k.index] = k
	} else {
		l.links = append(l.links, k)
	}
	err := l.poll.Add(k.sock, k.index, epoll.Readable)
	if err == nil {
		err = k.received()
	}
	if err != nil {
		return l.end(k, err)
	}
	return l.send(k)
}

// serve reads once and answers at once. Another read would usually return no data,
// because a closed loop has not sent new commands yet.
func (l *loop) serve(k *link, events epoll.Events) error {
	if events == epoll.Writable {
		return l.send(k)
	}
	n, err := k.sock.Read(k.in.space())
	switch err {
	case nil:
		k.in.add(n)
		err = k.received()
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
	return l.send(k)
}

// send writes as much pending output as the socket accepts, and closes a finished
// connection.
func (l *loop) send(k *link) error {
	if len(k.out) > 0 {
		n, err := k.sock.Write(k.out)
		if err != nil {
			return l.end(k, os.NewSyscallError("write", err))
		}
		k.out = k.out[:copy(k.out, k.out[n:])]
	}
	if full := len(k.out) > 0; full != k.full {
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

// end closes a connection, and returns the result of its peer's ended.
func (l *loop) end(k *link, err error) error {
	k.sock.Close()
	l.links[k.index] = nil
	l.free = append(l.free, k.index)
	return k.ended(err)
}
