package load

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
)

// goroutines are the portable driver: one for each connection, which reads. All
// peers share a lock. Whoever has made a peer say something writes it, so that
// what is in flight on a connection has to fit into the sockets' buffers.
type goroutines struct {
	all    sync.WaitGroup
	failed chan struct{} // closed when err is set

	mu    sync.Mutex // guards what follows, and every peer
	open  map[*talk]bool
	woken []*talk
	done  bool
	err   error
}

// A talk is a connection of theirs, and its peer.
type talk struct {
	peer
	conn   net.Conn
	closed bool
}

func newGoroutines() *goroutines {
	return &goroutines{failed: make(chan struct{}), open: make(map[*talk]bool)}
}

func (d *goroutines) run(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-d.failed:
	}
	d.mu.Lock()
	d.done = true
	for k := range d.open {
		k.conn.Close() // whoever reads from it or writes to it notices
	}
	d.mu.Unlock()
	d.all.Wait()
	return d.err
}

func (d *goroutines) join(nc net.Conn, p peer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done {
		nc.Close()
		return
	}
	k := &talk{conn: nc, peer: p}
	d.open[k] = true
	d.all.Go(func() { d.converse(k) })
}

// converse serves one connection until it ends.
func (d *goroutines) converse(k *talk) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k.attach(func() { d.woken = append(d.woken, k) })
	d.send(k)
	for !k.closed {
		space := k.space()
		if len(space) == 0 {
			d.end(k, errAhead)
			return
		}
		d.mu.Unlock()
		n, err := k.conn.Read(space)
		d.mu.Lock()
		switch {
		case n > 0:
			err = k.received(n)
		case errors.Is(err, io.EOF):
			err = errHungUp
		}
		if err != nil {
			d.end(k, err)
			return
		}
		d.send(k)
	}
}

// send writes what is pending for k and for those that were woken, and closes
// what is over.
func (d *goroutines) send(k *talk) {
	for d.woken = append(d.woken, k); len(d.woken) > 0; {
		k := d.woken[len(d.woken)-1]
		d.woken = d.woken[:len(d.woken)-1]
		if out := k.pending(); len(out) > 0 {
			if _, err := k.conn.Write(out); err != nil {
				d.end(k, err)
				continue
			}
			k.wrote(len(out))
		}
		if k.over() {
			d.end(k, nil)
		}
	}
}

// end closes a connection, unless that has been done. After the first error, and
// at the end of run, peers are not told any more.
func (d *goroutines) end(k *talk, err error) {
	if k.closed {
		return
	}
	k.closed = true
	k.conn.Close()
	delete(d.open, k)
	if d.done || d.err != nil {
		return
	}
	if d.err = k.ended(err); d.err != nil {
		close(d.failed)
	}
}
