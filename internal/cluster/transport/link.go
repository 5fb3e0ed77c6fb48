package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/beanpole-mq/beanpole/internal/cluster"
	"github.com/beanpole-mq/beanpole/internal/cluster/mux"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
)

const (
	pingEvery = 500 * time.Millisecond
	silence   = 5 * time.Second // a connection is closed after this time without a frame

	firstPause = 20 * time.Millisecond // the first pause between attempts to connect
	maxPause   = time.Second

	maxQueued      = 4096     // maximum number of messages that wait for a connection
	maxQueuedBytes = 80 << 20 // maximum size of their entries; a single larger message is accepted into an empty queue
)

// A link contains this member's connections to another member and the messages that wait
// for them.
type link struct {
	t       *Transport
	id      uint64
	address string
	ctx     context.Context
	close   context.CancelFunc
	session atomic.Pointer[mux.Session] // for clients; nil while there is no connection for them

	messages, entries queue
}

func newLink(t *Transport, m raftlog.MemberInfo) *link {
	l := &link{t: t, id: m.ID, address: m.Address}
	l.ctx, l.close = context.WithCancel(t.ctx)
	l.messages.wake, l.entries.wake = make(chan struct{}, 1), make(chan struct{}, 1)
	return l
}

func (l *link) send(m *raftpb.Message) {
	if withEntries(m) {
		l.entries.put(m)
	} else {
		l.messages.put(m)
	}
}

// run keeps the link connected until its context ends.
func (l *link) run() {
	pause, said := firstPause, ""
	known := false // whether the link has been connected
	for l.ctx.Err() == nil {
		term := l.t.raft.Lead().Term
		connected, err := l.connect()
		if l.ctx.Err() != nil {
			return
		}
		if connected {
			pause, said, known = firstPause, "", true
			l.t.log.Info("the connection to a member was closed", "member", l.id, "address", l.address, "err", err)
			l.t.raft.Unreachable(l.id)
			continue // connect at once: if the port is closed now, the process has ended
		}
		l.t.raft.Unreachable(l.id)
		what := "a member cannot be reached"
		if remote, ok := errors.AsType[RemoteError](err); ok {
			what = "another member refuses this member"
			l.t.raft.Rejected(l.id, remote)
		} else if errors.Is(err, cluster.ErrOccupied) {
			l.t.raft.Rejected(l.id, cluster.ErrOccupied)
		}
		if known && errors.Is(err, syscall.ECONNREFUSED) {
			l.t.raft.Refused(l.id, term)
		}
		if text := err.Error(); text != said {
			said = text
			l.t.log.Warn(what, "member", l.id, "address", l.address, "err", err)
		}
		select {
		case <-l.ctx.Done():
		case <-time.After(pause/2 + rand.N(pause/2)): // #nosec G404 -- spreads attempts over time
		}
		pause = min(2*pause, maxPause)
	}
}

// connect opens the connections for messages and entries and serves them until one fails.
// At the same time it serves the connection for clients. connected reports whether the
// first two were opened.
func (l *link) connect() (connected bool, err error) {
	messages, err := l.dial(forMessages)
	if err != nil {
		return false, err
	}
	defer messages.Close()
	entries, err := l.dial(forEntries)
	if err != nil {
		return false, err
	}
	defer entries.Close()
	l.messages.open()
	l.entries.open()
	defer l.messages.shut()
	defer l.entries.shut()
	l.t.log.Info("connected to a member", "member", l.id, "address", l.address)

	ctx, cancel := context.WithCancelCause(l.ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	wg.Go(func() { l.serveClients(ctx) })
	for _, f := range []func() error{
		func() error { return l.write(ctx, messages, &l.messages, pingEvery) },
		func() error { return l.write(ctx, entries, &l.entries, 0) },
		func() error { return readPings(messages, silence) },
		func() error { return readPings(entries, 0) }, // there are no pings; this detects the end of the connection
	} {
		wg.Go(func() { cancel(f()) })
	}
	<-ctx.Done()
	messages.NetConn().Close() // skip the TLS close_notify, which would wait for a dead machine
	entries.NetConn().Close()
	wg.Wait()
	return true, context.Cause(ctx)
}

// serveClients keeps a connection for clients open until ctx is done. Slow clients can
// make it fail, which must not delay the leader's heartbeats.
func (l *link) serveClients(ctx context.Context) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		conn, err := dial(ctx, l.t.opt.Credentials, l.address, l.id, forClients)
		if err == nil {
			pause = firstPause
			session := mux.New(conn, nil)
			l.session.Store(session)
			l.t.log.Debug("connected to a member for clients", "member", l.id)
			select {
			case <-session.Over():
				_, err = session.Open() // returns the session's error
			case <-ctx.Done():
			}
			l.session.Store(nil)
			session.Close()
		}
		if ctx.Err() == nil {
			l.t.warn.Do(func() {
				l.t.log.Warn("the connection for clients was closed", "member", l.id, "address", l.address, "err", err)
			})
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// dial opens a connection for messages or entries, on which both sides have exchanged
// handshakes.
func (l *link) dial(protocol string) (*tls.Conn, error) {
	conn, err := dial(l.ctx, l.t.opt.Credentials, l.address, l.id, protocol)
	if err != nil {
		return nil, err
	}
	if err := l.handshake(conn); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func (l *link) handshake(conn *tls.Conn) error {
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	own := l.t.raft.Handshake()
	if err := writeHandshake(conn, handshake{Handshake: &own}); err != nil {
		return err
	}
	h, err := readHandshake(conn)
	if err != nil {
		return err
	}
	if err := l.t.raft.AcceptHandshake(l.id, h); err != nil {
		return fmt.Errorf("this member refuses member %d: %w", l.id, err)
	}
	return conn.SetDeadline(time.Time{})
}

// write writes the messages of a queue. If pings is not zero, it also writes an empty
// frame at this interval.
func (l *link) write(ctx context.Context, conn *tls.Conn, q *queue, pings time.Duration) error {
	var ping <-chan time.Time
	if pings > 0 {
		ticker := time.NewTicker(pings)
		defer ticker.Stop()
		ping = ticker.C
	}
	var buf []byte
	for {
		select {
		case <-ctx.Done():
			return errClosed
		case <-q.wake:
		case <-ping:
			buf = appendFrame(buf, nil)
		}
		messages, lost := q.take()
		if lost {
			l.t.raft.Unreachable(l.id)
		}
		for _, m := range messages {
			var err error
			if buf, err = appendMessage(buf, m); err != nil {
				return err
			}
			if len(buf) >= writeSize {
				if buf, err = writeAll(conn, buf); err != nil {
					return err
				}
			}
		}
		var err error
		if buf, err = writeAll(conn, buf); err != nil {
			return err
		}
	}
}

// writeSize is the size at which the buffered messages are written, in bytes.
const writeSize = 256 << 10

// writeAll writes a buffer and returns it empty. Each part must be written within
// silence.
func writeAll(conn *tls.Conn, buf []byte) ([]byte, error) {
	for at := 0; at < len(buf); at += writeSize {
		conn.SetWriteDeadline(time.Now().Add(silence))
		if _, err := conn.Write(buf[at:min(len(buf), at+writeSize)]); err != nil {
			return nil, err
		}
	}
	if cap(buf) > 4*writeSize {
		return nil, nil // release the buffer of a large job
	}
	return buf[:0], nil
}

// readPings reads the empty frames that the other side returns. It fails if none arrives
// for the time silent; zero means no limit.
func readPings(conn *tls.Conn, silent time.Duration) error {
	r := bufio.NewReaderSize(conn, 64)
	for {
		if silent > 0 {
			conn.SetReadDeadline(time.Now().Add(silent))
		}
		if _, err := readFrame(r, 0); err != nil {
			return err
		}
	}
}

// A queue contains messages that wait for a connection.
type queue struct {
	wake chan struct{} // receives a signal while there are messages

	mu       sync.Mutex
	isOpen   bool
	messages []*raftpb.Message
	bytes    int
	lost     bool
}

// put appends a message, unless the queue is shut.
func (q *queue) put(m *raftpb.Message) {
	size := 0
	for _, e := range m.GetEntries() {
		size += len(e.GetData())
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case !q.isOpen:
		return
	case len(q.messages) >= maxQueued, q.bytes > 0 && q.bytes+size > maxQueuedBytes:
		q.lost = true
	default:
		q.messages = append(q.messages, m)
		q.bytes += size
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take returns the messages, and whether messages were dropped since the last call.
func (q *queue) take() (messages []*raftpb.Message, lost bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	messages, lost = q.messages, q.lost
	q.messages, q.bytes, q.lost = nil, 0, false
	return messages, lost
}

func (q *queue) open() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.isOpen = true
}

// shut drops all messages, and makes put drop new ones.
func (q *queue) shut() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.isOpen, q.messages, q.bytes = false, nil, 0
}
