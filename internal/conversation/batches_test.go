package conversation

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// reserved returns the sizes of the bodies in the batch, which must be the only reply.
func (g *client) reserved() (sizes []int) {
	g.driver.tb.Helper()
	got, left := g.got.Bytes(), uint64(1)
	var r wire.Reply
	for ; left > 0; left-- {
		n, err := wire.ParseReply(got, &r)
		if n == 0 {
			g.driver.tb.Fatalf("%.60q: %v", got, err)
		}
		got = got[n:]
		if r.Kind == wire.ReservedBatch {
			left += r.N
		} else {
			sizes = append(sizes, len(r.Body))
		}
	}
	if len(got) > 0 {
		g.driver.tb.Fatalf("%.60q follows", got)
	}
	g.got.Reset()
	return sizes
}

// A batch has at most a MiB of bodies, or one body. It arrives completely even if the
// client reads slowly.
func TestBatchIsBounded(t *testing.T) {
	for _, taking := range []int{0, 100_000} {
		d := newDriver(t)
		d.taking = taking
		s := d.eng.Open(nil)
		for i, size := range []int{400_000, 100, 200_000, largeBody, 300_000, 2 << 20, 1, 2} {
			d.eng.Put(d.now, s, engine.Spec{Pri: uint32(i), TTR: 3600}, bytes.Repeat([]byte{'a' + byte(i)}, size))
		}
		g := d.connect()
		for _, want := range []string{"[400000 100 200000 131073 300000]", "[2097152]", "[1 2]", "[]"} {
			g.send("reserve-batch 1000\n")
			if got := fmt.Sprint(g.reserved()); got != want {
				t.Errorf("bodies of %s, want %s", got, want)
			}
		}
		g.end()
	}
}

// Two commands reserve and delete a thousand jobs, each with one reply. Other clients
// wait for at most one turn.
func TestBatchOfManyJobs(t *testing.T) {
	for _, failing := range []error{nil, errDisk} {
		d := newDriver(t)
		s := d.eng.Open(nil)
		for range wire.MaxBatch {
			d.eng.Put(d.now, s, engine.Spec{TTR: 3600}, []byte("x"))
		}
		g := d.connect()
		for n := 0; n < wire.MaxBatch; {
			g.send("reserve-batch 1000\n")
			got := len(g.reserved())
			if n += got; got == 0 {
				t.Fatalf("%d jobs were reserved", n)
			}
		}
		line := []byte("delete-batch")
		for id := range wire.MaxBatch {
			line = fmt.Appendf(line, " %d", id+1)
		}
		g.Receive(d.batch, d.now, append(line, "\r\nuse x\r\n"...))
		d.now = d.batch.Apply(d.eng, d.now+1)
		d.batch.TurnOver()
		d.batch.Settle(failing)
		d.batch.Reset()
		g.wantState(Ready)
		g.proceed()
		if failing == nil {
			g.want("DELETED_BATCH 1000 0\nUSING x\n")
		} else {
			g.want("INTERNAL_ERROR\nUSING x\n")
		}
		if d.eng.Stats().Reserved != 0 {
			t.Error(d.eng.Stats())
		}
		g.end()
	}
}

// A waiting batch command gets the job that ends the wait, in the requested form.
func TestBatchWaits(t *testing.T) {
	d := newDriver(t)
	g, other := d.connect(), d.connect()
	g.send("want tube reserves\nreserve-batch 5 9\npeek 1\n")
	g.want("OK\n")
	g.wantState(Waiting)
	other.send("put 0 0 60 1\na\nput 0 0 60 1\nb\n")
	g.want("RESERVED_BATCH 1\nRESERVED 1 1 tube=default reserves=1\na\nFOUND 1 1 tube=default reserves=1\na\n")
	g.send("reserve\nreserve\n")
	g.want("RESERVED 2 1 tube=default reserves=1\nb\n")
	big := strings.Repeat("x", largeBody)
	other.send(fmt.Sprintf("put 0 0 60 %d\n%s\n", largeBody, big))
	g.want(fmt.Sprintf("RESERVED 3 %d tube=default reserves=1\n%s\n", largeBody, big))
	g.send("reserve-batch 2 1\n")
	d.now += 2e9
	d.turn()
	g.want("TIMED_OUT\n")
	g.end()
	other.end()
}
