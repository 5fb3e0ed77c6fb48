package soak

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	queue "github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/test/ledger"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// A server is stopped and started again and again while clients put, reserve and
// delete. Its socket is open all the time, as systemd holds it: nobody is refused,
// what was acknowledged is there, and what was deleted is not.
func TestRestart(t *testing.T) {
	t.Parallel()
	const clients, each = 4, 150 // jobs deleted in each life
	s := newSoak(t)
	socket, addr := heldSocket(t)
	var srv *server
	launch := func() {
		t.Helper()
		// LISTEN_PID must be the process that takes the socket, hence the shell.
		args := []string{"-c", `export LISTEN_PID=$$; exec "$0" "$@"`, s.program, "-b", s.dir, "-s", "20000"}
		var err error
		if srv, err = start("sh", args, []string{"LISTEN_FDS=1"}, socket); err != nil {
			t.Fatalf("%v\n%s", err, srv.log)
		}
	}
	launch()
	defer func() {
		srv.cmd.Process.Kill()
		<-srv.exited
	}()
	stop := func() {
		t.Helper()
		srv.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-srv.exited:
		case <-time.After(patience):
			t.Fatal("the server does not stop")
		}
		if code := srv.cmd.ProcessState.ExitCode(); code != 0 {
			t.Fatalf("%v\n%s", srv.cmd.ProcessState, srv.log)
		}
	}

	ctx, cancel := context.WithTimeout(t.Context(), 10*patience+seeds.Time(0))
	defer cancel()
	b := &crew{Ledger: ledger.New[string](), t: t, addr: addr, progress: make(chan struct{}, 1)}
	noPuts, stopPuts := context.WithCancel(ctx)
	noWork, stopWork := context.WithCancel(ctx)
	var producers, workers sync.WaitGroup
	for i := range clients {
		producers.Go(func() { b.produce(noPuts, fmt.Sprint("producer-", i)) })
		workers.Go(func() { b.work(noWork) })
	}
	defer workers.Wait()
	defer producers.Wait()
	defer cancel()

	b.await(ctx, each)
	restarts := 0
	for range seeds.Rounds(t, 2) {
		restarts++
		stop()
		early := b.connect(ctx) // nobody is there
		launch()
		early()
		b.await(ctx, each)
	}
	stopPuts()
	producers.Wait()
	b.awaitEmpty(ctx)
	stopWork()
	workers.Wait()
	b.balance(restarts * clients)
	stop()
}

// heldSocket returns a socket that listens as long as the test holds it.
func heldSocket(t *testing.T) (socket *os.File, addr string) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	if socket, err = l.File(); err != nil {
		t.Fatal(err)
	}
	l.Close()
	t.Cleanup(func() { socket.Close() })
	return socket, l.Addr().String()
}

// A crew are the clients of TestRestart, and what they were told of their jobs, by body.
type crew struct {
	*ledger.Ledger[string]
	t        *testing.T
	addr     string
	progress chan struct{} // has something when a job was deleted
}

// dial connects; a connection that is refused while the server restarts fails the test.
func (k *crew) dial(ctx context.Context) (*queue.Conn, error) {
	return queue.Dial(ctx, k.addr, &queue.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil && ctx.Err() == nil {
			k.t.Errorf("a client is refused: %v", err)
		}
		return nc, err
	}})
}

// produce puts jobs until it is told to stop.
func (k *crew) produce(ctx context.Context, name string) {
	c, err := k.dial(ctx)
	if err != nil {
		k.t.Error(err)
		return
	}
	defer c.Close()
	for n := 0; ctx.Err() == nil; n++ {
		body := fmt.Sprintf("%s-%d", name, n)
		k.Put(body)
		switch id, err := c.Put(ctx, queue.NewJob{Body: []byte(body), TTR: time.Minute}); {
		case err == nil:
			k.Inserted(body, id)
		case !errors.Is(err, queue.ErrOutcomeUnknown) && ctx.Err() == nil:
			k.t.Errorf("put: %v", err)
			return
		}
	}
}

// work reserves and deletes jobs until it is told to stop.
func (k *crew) work(ctx context.Context) {
	c, err := k.dial(ctx)
	if err != nil {
		k.t.Error(err)
		return
	}
	defer c.Close()
	for ctx.Err() == nil {
		sent := k.Now()
		job, err := c.ReserveTimeout(ctx, time.Second)
		switch {
		case errors.Is(err, queue.ErrTimedOut) || ctx.Err() != nil:
			continue
		case err != nil:
			k.t.Errorf("reserve: %v", err)
			return
		}
		k.Shown(string(job.Body), job.ID, sent)
		k.Delete(string(job.Body))
		switch err := job.Delete(ctx); {
		case err == nil:
			k.gone(string(job.Body))
		case errors.Is(err, queue.ErrOutcomeUnknown), errors.Is(err, queue.ErrNotFound):
			// The connection was lost: the delete may be done, or another has the job.
		case ctx.Err() == nil:
			k.t.Errorf("delete: %v", err)
			return
		}
	}
}

// gone notes that the deletion of a job was acknowledged.
func (k *crew) gone(body string) {
	k.Deleted(body)
	select {
	case k.progress <- struct{}{}:
	default:
	}
}

// connect puts a job on a bare connection, which the server that is started next
// must answer: that is what the function that it returns waits for.
func (k *crew) connect(ctx context.Context) (answered func()) {
	k.t.Helper()
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", k.addr)
	if err != nil {
		k.t.Fatalf("while no server runs: %v", err)
	}
	body := fmt.Sprint("early-", k.Now())
	k.Put(body)
	fmt.Fprintf(nc, "put 0 0 60 %d\r\n%s\r\n", len(body), body)
	return func() {
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(patience))
		var id uint64
		if line, err := bufio.NewReader(nc).ReadString('\n'); err != nil {
			k.t.Errorf("who came while no server ran: %v", err)
		} else if _, err := fmt.Sscanf(line, "INSERTED %d\r\n", &id); err != nil {
			k.t.Errorf("who came while no server ran is answered %q", line)
		} else {
			k.Inserted(body, id)
		}
	}
}

// await waits until n more jobs were deleted.
func (k *crew) await(ctx context.Context, n int) {
	k.t.Helper()
	_, before := k.Acknowledged()
	for {
		_, deletes := k.Acknowledged()
		if deletes >= before+n {
			return
		}
		select {
		case <-k.progress:
		case <-ctx.Done():
			k.t.Fatalf("only %d jobs were deleted, want %d", deletes, before+n)
		}
	}
}

// awaitEmpty waits until the server has no jobs.
func (k *crew) awaitEmpty(ctx context.Context) {
	k.t.Helper()
	c, err := k.dial(ctx)
	if err != nil {
		k.t.Fatal(err)
	}
	defer c.Close()
	for {
		stats, err := c.Stats(ctx)
		if err != nil {
			k.t.Fatal(err)
		}
		if stats.JobsReady+stats.JobsReserved+stats.JobsDelayed+stats.JobsBuried == 0 {
			return
		}
	}
}

// balance looks for jobs that were acknowledged and never came out. Of few jobs is
// it unknown whether they were deleted.
func (k *crew) balance(unknown int) {
	k.t.Helper()
	if err := k.Check(func(func(string, uint64) bool) {}, k.Now()); err != nil { // nothing is left
		k.t.Error(err)
	}
	puts, deletes := k.Acknowledged()
	k.t.Logf("%d jobs acknowledged, %d deletions; %d without an answer", puts, deletes, k.InDoubt())
	if doubtful := k.InDoubt(); doubtful > unknown {
		k.t.Errorf("of %d jobs is not known whether they were deleted, at most %d can be", doubtful, unknown)
	}
}
