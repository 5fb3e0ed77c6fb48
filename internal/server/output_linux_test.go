package server

import (
	"io"
	"sync"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A loop bounds the output of an iteration, regardless of the number and speed of clients
// that read long replies.
func TestOutputOfPassIsBounded(t *testing.T) {
	const clients, body = 10, 2 << 20
	r := start(t, Options{Loops: 1, MaxJobSize: body})
	r.putLarge(body)
	n := &kernel{Buffer: 2 * body}
	var all sync.WaitGroup
	for range clients {
		c := r.dialKernel(n)
		c.send("peek 1\n")
		all.Go(func() { io.CopyN(io.Discard, c.nc, body) })
	}
	r.serve(n)
	all.Wait()
	// One more piece can follow iterationOutput, and each body has a line before it.
	if _, most := n.Counts(); most.Written > iterationOutput+maxPiece+clients*100 {
		t.Errorf("%d bytes were written in an iteration", most.Written)
	}
}

// putLarge puts job 1, with a body of size bytes, into the tube default.
func (r *rig) putLarge(size int) {
	r.broker.Call(func(e *engine.Engine, now int64) {
		e.PutInto(now, []byte("default"), engine.Spec{TTR: 3600}, make([]byte, size))
	})
}

// The output to proxied clients is bounded in the same way.
func TestOutputOfProxyIsBounded(t *testing.T) {
	const clients = 40
	streams := make([]*endlessStream, clients)
	for i := range streams {
		streams[i] = &endlessStream{pieces: 3}
	}
	loop, _ := newProxyLoop(t, streams...)
	left := func() (n int) {
		for _, s := range streams {
			n += s.pieces
		}
		return n
	}
	for left() > 0 {
		before := left()
		loop.step()
		if n := before - left(); n > iterationOutput/readSize+writesPerBatch {
			t.Fatalf("an iteration passes back %d pieces, want %d at most", n, iterationOutput/readSize+writesPerBatch)
		}
	}
}
