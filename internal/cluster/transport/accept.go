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
		case err != nil: // usually because no descriptor is free
			t.warn.Do(func() { t.log.Warn("cannot accept members' connections", "err", err) })
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
					t.warn.Do(func() { t.log.Warn("a member's connection was closed", "client", nc.RemoteAddr(), "err", err) })
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
	if t.pending.add(nc) {
		t.warn.Do(func() {
			t.log.Warn("too many connections have presented no member certificate; closing the oldest of the host with the most", "connections", maxUnauthenticated)
		})
	}
	return true
}

// authenticated records that the other end of a connection has presented a member's
// certificate.
func (t *Transport) authenticated(nc net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending.remove(nc)
}

// bindToMember binds a connection to a member: SetMembers closes the connection when it
// removes the member. It returns false if the member does not exist.
func (t *Transport) bindToMember(nc net.Conn, to uint64) bool {
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
	t.pending.remove(nc)
}

// handshake performs the TLS handshake of an accepted connection.
func (t *Transport) handshake(conn *tls.Conn) (from uint64, protocol string, err error) {
	ctx, cancel := context.WithTimeout(t.ctx, handshakeTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		return 0, "", err
	}
	return peerOf(t.opt.Credentials, conn.ConnectionState())
}

// serve serves an accepted connection. The error is for the log. A removed member keeps
// its certificate, but can only send requests, so that it can rejoin. AcceptHandshake
// refuses its messages; serve refuses the other protocols.
func (t *Transport) serve(conn *tls.Conn) error {
	from, protocol, err := t.handshake(conn)
	if err != nil {
		return err
	}
	if from != 0 {
		t.authenticated(conn.NetConn())
	}
	switch protocol {
	case forMessages, forEntries:
		t.bindToMember(conn.NetConn(), from)
	case forClients, forSnapshot, forAdmin:
		if !t.bindToMember(conn.NetConn(), from) {
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

// A patient connection fails if the other end does not read a write within snapshotStall.
type patient struct{ *tls.Conn }

// snapshotStall is the time limit for one write of a snapshot.
const snapshotStall = time.Minute

func (p patient) Write(b []byte) (int, error) {
	p.SetWriteDeadline(time.Now().Add(snapshotStall))
	return p.Conn.Write(b)
}

// receive reads the handshake and then the messages of a member. A message can have up to
// most bytes. receive fails if the connection is silent for longer than silent; zero
// means no limit. If pings is true, it returns pings.
func (t *Transport) receive(conn *tls.Conn, from uint64, most int, silent time.Duration, pings bool) error {
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	r := bufio.NewReaderSize(conn, 64<<10)
	h, err := readHandshake(r)
	if err != nil {
		return err
	}
	if err = t.raft.AcceptHandshake(from, h); err != nil {
		return writeHandshake(conn, handshake{Error: remoteError(err)})
	}
	own := t.raft.Handshake()
	if err := writeHandshake(conn, handshake{Handshake: &own}); err != nil {
		return err
	}
	conn.SetDeadline(time.Time{})
	pong := appendFrame(nil, nil)
	var frame bytes.Buffer // parseMessage copies the data that it keeps
	for {
		if silent > 0 {
			conn.SetReadDeadline(time.Now().Add(silent))
		}
		if frame.Cap() > 4*writeSize {
			frame = bytes.Buffer{} // release the buffer of a large job
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

// ended returns nil for errors that need no log line: the other side has closed the
// connection, or the connection has failed and the dialing side logs that.
func ended(err error) error {
	if errors.Is(err, errFrame) {
		return err
	}
	return nil
}
