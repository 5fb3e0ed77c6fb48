package transport

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/beanpole-mq/beanpole/internal/cluster"
	"github.com/beanpole-mq/beanpole/internal/cluster/mux"
)

// accept accepts connections until Close.
func (t *Transport) accept() {
	config := serverConfig(t.opt.Credentials)
	pause := firstPause
	for {
		nc, err := t.opt.Listener.Accept()
		switch {
		case t.ctx.Err() != nil:
			if err == nil {
				nc.Close()
			}
			return
		case err != nil: // out of descriptors, most likely
			t.warn.Do(func() { t.log.Warn("cannot accept connections of members", "err", err) })
			select {
			case <-t.ctx.Done():
			case <-time.After(pause):
			}
			pause = min(2*pause, maxPause)
			continue
		}
		pause = firstPause
		if tcp, ok := nc.(*net.TCPConn); ok {
			tcp.SetKeepAliveConfig(keepAlive)
		}
		if t.add(nc) {
			t.wg.Go(func() {
				defer t.remove(nc)
				if err := t.serve(tls.Server(nc, config)); err != nil && t.ctx.Err() == nil {
					t.warn.Do(func() { t.log.Warn("a connection of a member was closed", "client", nc.RemoteAddr(), "err", err) })
				}
			})
		}
	}
}

func (t *Transport) add(nc net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		nc.Close()
		return false
	}
	t.conns[nc] = 0
	if t.come(nc) {
		t.warn.Do(func() {
			t.log.Warn("too many connections have shown no certificate of a member: the oldest of the host that has most is closed", "connections", maxStrangers)
		})
	}
	return true
}

// known notes that a connection has shown a member's certificate.
func (t *Transport) known(nc net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone(nc)
}

// belongs notes to which member a connection belongs: SetMembers closes the connection when
// the membership ends. It reports whether there is such a member.
func (t *Transport) belongs(nc net.Conn, to uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conns[nc] = to
	return t.links[to] != nil
}

func (t *Transport) remove(nc net.Conn) {
	nc.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, nc)
	t.gone(nc)
}

// handshake encrypts a connection.
func (t *Transport) handshake(conn *tls.Conn) (from uint64, protocol string, err error) {
	ctx, cancel := context.WithTimeout(t.ctx, handshakeTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		return 0, "", err
	}
	return peerOf(t.opt.Credentials, conn.ConnectionState())
}

// serve serves an accepted connection. The error is for the log. A removed member keeps its
// certificate. It can only send requests, for rejoin: AcceptHandshake refuses its messages,
// and serve everything else.
func (t *Transport) serve(conn *tls.Conn) error {
	from, protocol, err := t.handshake(conn)
	if err != nil {
		return err
	}
	if from != 0 {
		t.known(conn.NetConn())
	}
	switch protocol {
	case forMessages, forEntries:
		t.belongs(conn.NetConn(), from)
	case forClients, forSnapshot, forAdmin:
		if !t.belongs(conn.NetConn(), from) {
			return fmt.Errorf("member %d: %w", from, cluster.ErrNotMember)
		}
	}
	switch protocol {
	case forMessages:
		err = t.receive(conn, from, maxSmall, silence, true)
	case forEntries:
		err = t.receive(conn, from, maxEntries, 0, false)
	case forClients:
		session := mux.New(conn, func(s *mux.Stream) { t.wg.Go(func() { t.opt.Client(from, s) }) })
		<-session.Over()
		session.Close()
	case forSnapshot:
		t.opt.Snapshot(from, patient{conn})
	case forAdmin:
		t.opt.Admin(from, conn)
	case forRequest:
		err = t.answer(conn, maxSmall, func(ctx context.Context, body []byte) ([]byte, error) { return t.opt.Request(ctx, from, body) })
	case forJoin:
		err = t.answer(conn, maxJoin, func(ctx context.Context, body []byte) ([]byte, error) {
			return t.opt.Join(ctx, conn.RemoteAddr(), body)
		})
	}
	if err != nil && from != 0 {
		err = fmt.Errorf("member %d: %w", from, err)
	}
	return err
}

// patient is a connection whose other end must take each write within snapshotStall.
type patient struct{ *tls.Conn }

// snapshotStall is how long a member may take for a piece of what it lacks.
const snapshotStall = time.Minute

func (p patient) Write(b []byte) (int, error) {
	p.SetWriteDeadline(time.Now().Add(snapshotStall))
	return p.Conn.Write(b)
}

// receive takes the handshake of a member and takes its messages, each of so many bytes
// at most. A connection is closed that is silent for longer than it may be; 0 is for
// ever. Pings are sent back.
func (t *Transport) receive(conn *tls.Conn, from uint64, most int, silent time.Duration, pings bool) error {
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	r := bufio.NewReaderSize(conn, 64<<10)
	h, err := readHandshake(r)
	if err != nil {
		return err
	}
	err = t.raft.AcceptHandshake(from, h)
	t.logRejection(from, err)
	if err != nil {
		return writeHandshake(conn, handshake{Error: remoteError(err)})
	}
	own := t.raft.Handshake()
	if err := writeHandshake(conn, handshake{Handshake: &own}); err != nil {
		return err
	}
	conn.SetDeadline(time.Time{})
	pong := appendFrame(nil, nil)
	var frame bytes.Buffer // parseMessage copies what it keeps
	for {
		if silent > 0 {
			conn.SetReadDeadline(time.Now().Add(silent))
		}
		if frame.Cap() > 4*writeSize {
			frame = bytes.Buffer{} // it was for a large job
		}
		err = readFrameInto(&frame, r, most)
		switch {
		case err != nil:
			return ended(err)
		case frame.Len() > 0:
			m, err := parseMessage(frame.Bytes(), from, t.self)
			if err != nil {
				return err
			}
			t.raft.Step(m)
		case pings:
			conn.SetWriteDeadline(time.Now().Add(silence))
			if _, err := conn.Write(pong); err != nil {
				return ended(err)
			}
		}
	}
}

// logRejection logs why a member is refused, once: it tries again and again.
func (t *Transport) logRejection(id uint64, why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if why == nil {
		delete(t.rejections, id)
	} else if text := why.Error(); text != t.rejections[id] {
		t.rejections[id] = text
		t.log.Warn("a member is refused", "member", id, "err", why)
	}
}

// ended returns nil for the errors of a connection that the other side has ended, or that
// has failed, which the side that dials logs.
func ended(err error) error {
	if errors.Is(err, errFrame) {
		return err
	}
	return nil
}
