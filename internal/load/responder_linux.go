package load

import (
	"context"
	"errors"
	"math"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/epoll"
)

// serve runs the responder on the calling goroutine, locked to its thread.
func (r *responder) serve(ctx context.Context, l net.Listener) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if u, ok := l.(*net.UnixListener); ok {
		defer os.Remove(u.Addr().String())
		u.SetUnlinkOnClose(false)
	}
	fd, err := epoll.Take(l)
	if err != nil {
		l.Close()
		return err
	}
	defer fd.Close()
	poll, err := epoll.New()
	if err != nil {
		return err
	}
	defer poll.Close()
	if err := poll.Add(fd, listenerIndex, epoll.Readable); err != nil {
		return err
	}
	rl := &responderLoop{responder: r, poll: poll, listener: fd}
	defer rl.closeAll()
	for ctx.Err() == nil {
		for _, ev := range poll.Wait(idleWait) {
			if err := rl.handle(ev.Index, ev.Events); err != nil {
				return err
			}
		}
	}
	return nil
}

// listenerIndex is what the poller calls the listener.
const listenerIndex = math.MaxInt32

// A responderLoop is the one thread that serves all connections.
type responderLoop struct {
	*responder
	poll     *epoll.Poller
	listener epoll.Socket
	socks    []*responderSock // by index; nil when free
}

type responderSock struct {
	sock
	*responderConn
}

func (l *responderLoop) handle(index int, events epoll.Events) error {
	if index == listenerIndex {
		return l.accept()
	}
	k := l.socks[index]
	if k == nil { // ended earlier in this round
		return nil
	}
	if events != epoll.Writable {
		space := k.space()
		if len(space) == 0 {
			l.drop(k) // it fills the buffer behind a waiting reserve
			return nil
		}
		n, err := k.read(space)
		if err != nil {
			l.drop(k)
			return nil
		}
		k.responderConn.w += n
		l.answer(k.responderConn)
	}
	l.send(k)
	return nil
}

// send writes what there is. A connection that fails is no concern of others.
func (l *responderLoop) send(k *responderSock) {
	n, err := k.write(l.poll, k.out)
	if err != nil || k.quits {
		l.drop(k)
		return
	}
	k.out = k.out[:copy(k.out, k.out[n:])]
}

func (l *responderLoop) accept() error {
	fd, _, err := unix.Accept4(int(l.listener), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNABORTED):
		return nil
	case err != nil:
		return os.NewSyscallError("accept4", err)
	}
	// Fails on unix sockets, which do not delay anything.
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	index := 0
	for index < len(l.socks) && l.socks[index] != nil {
		index++
	}
	k := &responderSock{sock{Socket: epoll.Socket(fd), index: index}, l.newConn()}
	k.woken = func() {
		l.answer(k.responderConn)
		l.send(k)
	}
	if index == len(l.socks) {
		l.socks = append(l.socks, nil)
	}
	l.socks[index] = k
	if err := l.poll.Add(k.Socket, index, epoll.Readable); err != nil {
		l.drop(k)
		return err
	}
	return nil
}

func (l *responderLoop) drop(k *responderSock) {
	if k.closed {
		return
	}
	k.forget()
	l.socks[k.index] = nil
	k.close()
}

func (l *responderLoop) closeAll() {
	for _, k := range l.socks {
		if k != nil {
			k.close()
		}
	}
}
