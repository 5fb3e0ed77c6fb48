package sim

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/memnet"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/test/faultfs"
	"github.com/beanpole-mq/beanpole/internal/test/ledger"
)

// Clients connect, run a few commands and disconnect, some without waiting for the
// replies. The disk fails, recovers, fails again and is full. After each restart, the
// clients' account matches the queue, and each client gets its replies.
func TestShortLivedClientsWhileDiskFails(t *testing.T) {
	eachSeed(t, 3, func(t *testing.T, name string, seed uint64) {
		sync := []time.Duration{0, 20 * time.Millisecond, -1}[seed%3]
		w := newWorld(t, name, seed, journal.Options{SegmentSize: 1024 << (seed % 4), Sync: sync})
		a := &account{Ledger: ledger.New[string](), world: w}
		failed := 0
		for round := range 4 {
			w.mustBoot()
			a.audit()
			failed += a.serveShortLived(round)
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if err := w.stats().Health; err != nil {
				w.fatalf("the disk has recovered, but the journal reports: %v", err)
			}
			if sync == 0 && w.rng.IntN(2) == 0 { // otherwise changes can be lost
				w.powerCut()
			} else {
				w.kill()
			}
		}
		w.mustBoot()
		a.audit()
		w.kill()
		if failed == 0 {
			w.fatalf("no call failed")
		}
	})
}

// serveShortLived runs a server and its clients while the disk sometimes fails. It
// returns the number of failed disk calls.
func (a *account) serveShortLived(round int) (failed int) {
	w := a.world
	srv := server.New(w.broker, server.Options{})
	l := memnet.Listen()
	stop := w.serve(srv, l)
	over := make(chan struct{})
	var clients, disk sync.WaitGroup
	faults := newRand(w.rng.Uint64())
	disk.Go(func() { failed = a.failNowAndThen(faults, over) })
	for i := range 4 {
		rng := newRand(w.rng.Uint64())
		clients.Go(func() {
			for n := range 40 {
				c := newClient(a, l, rng, fmt.Sprintf("%d.%d.%d", round, i, n))
				c.runOnce()
				time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
			}
		})
	}
	clients.Wait()
	close(over)
	disk.Wait()
	stop()
	return failed
}

// failNowAndThen makes disk calls fail, repeatedly, for up to a second each time.
func (a *account) failNowAndThen(rng *rand.Rand, over <-chan struct{}) (failed int) {
	w := a.world
	for {
		w.fsys.Set(faultfs.Fault{
			Op:     faultfs.Change,
			N:      1 + rng.IntN(20),
			How:    faultfs.How(rng.IntN(3)),
			Sticky: rng.IntN(2) == 0,
			Err:    []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EMFILE}[rng.IntN(3)],
		})
		select {
		case <-over:
		case <-time.After(time.Duration(rng.IntN(1000)) * time.Millisecond):
		}
		failed += w.fsys.Fired()
		w.fsys.Set()
		select {
		case <-over:
			return failed
		case <-time.After(time.Duration(rng.IntN(1500)) * time.Millisecond):
		}
	}
}

// runOnce runs a few commands and disconnects.
func (c *client) runOnce() {
	defer c.nc.Close()
	for n := range 1 + c.rng.IntN(3) {
		ok := true
		switch c.rng.IntN(8) {
		case 0, 1, 2:
			ok = c.produce(n)
		case 3, 4, 5:
			ok = c.consume()
		case 6:
			_, ok = c.do("kick %d\r\n", 1+c.rng.IntN(3))
		case 7: // put without waiting for the reply
			body := fmt.Sprintf("%s.%d unheard", c.name, n)
			c.put(body, false)
			fmt.Fprintf(c.nc, "put 1 0 5 %d\r\n%s\r\n", len(body), body)
			return
		}
		if !ok && c.rng.IntN(2) == 0 {
			return
		}
	}
}
