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
	b := &books{t: t, addr: addr, put: make(map[string]outcome), deleted: make(map[string]deletion), progress: make(chan struct{}, 1)}
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

// books are what the clients of TestRestart were told, by the bodies of the jobs,
// which are all different.
type books struct {
	t        *testing.T
	addr     string
	progress chan struct{} // has something when a job was deleted

	mu      sync.Mutex
	clock   int // grows with each entry
	put     map[string]outcome
	deleted map[string]deletion
	count   int // jobs whose deletion was acknowledged
}

type outcome int

const (
	never    outcome = iota // nobody has asked for it
	asked                   // and was not answered
	promised                // acknowledged
)

// A deletion was asked for, and acknowledged when the clock was there; 0: it was not.
type deletion struct{ acknowledged int }

// dial connects; a connection that is refused while the server restarts fails the test.
func (b *books) dial(ctx context.Context) (*queue.Conn, error) {
	return queue.Dial(ctx, b.addr, &queue.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil && ctx.Err() == nil {
			b.t.Errorf("a client is refused: %v", err)
		}
		return nc, err
	}})
}

// produce puts jobs until it is told to stop.
func (b *books) produce(ctx context.Context, name string) {
	c, err := b.dial(ctx)
	if err != nil {
		b.t.Error(err)
		return
	}
	defer c.Close()
	for n := 0; ctx.Err() == nil; n++ {
		body := fmt.Sprintf("%s-%d", name, n)
		b.note(body, asked)
		switch _, err := c.Put(ctx, queue.NewJob{Body: []byte(body), TTR: time.Minute}); {
		case err == nil:
			b.note(body, promised)
		case !errors.Is(err, queue.ErrOutcomeUnknown) && ctx.Err() == nil:
			b.t.Errorf("put: %v", err)
			return
		}
	}
}

func (b *books) note(body string, o outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put[body] = o
}

// work reserves and deletes jobs until it is told to stop.
func (b *books) work(ctx context.Context) {
	c, err := b.dial(ctx)
	if err != nil {
		b.t.Error(err)
		return
	}
	defer c.Close()
	for ctx.Err() == nil {
		b.mu.Lock()
		sent := b.clock
		b.mu.Unlock()
		job, err := c.ReserveTimeout(ctx, time.Second)
		switch {
		case errors.Is(err, queue.ErrTimedOut) || ctx.Err() != nil:
			continue
		case err != nil:
			b.t.Errorf("reserve: %v", err)
			return
		}
		b.reserved(string(job.Body), sent)
		switch err := job.Delete(ctx); {
		case err == nil:
			b.gone(string(job.Body))
		case errors.Is(err, queue.ErrOutcomeUnknown), errors.Is(err, queue.ErrNotFound):
			// The connection was lost: the delete may be done, or another has the job.
		case ctx.Err() == nil:
			b.t.Errorf("delete: %v", err)
			return
		}
	}
}

// reserved notes that a job came, in answer to a reserve that was sent when the
// clock was there, and is about to be deleted.
func (b *books) reserved(body string, sent int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.put[body] == never {
		b.t.Errorf("nobody has put %q", body)
	}
	d := b.deleted[body]
	if d.acknowledged != 0 && d.acknowledged <= sent {
		b.t.Errorf("%q was deleted and comes again", body)
	}
	b.deleted[body] = d
}

// gone notes that the deletion of a job was acknowledged.
func (b *books) gone(body string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted[body].acknowledged != 0 {
		b.t.Errorf("%q was deleted twice", body)
	}
	b.clock++
	b.deleted[body] = deletion{b.clock}
	b.count++
	select {
	case b.progress <- struct{}{}:
	default:
	}
}

// connect puts a job on a bare connection, which the server that is started next
// must answer: that is what the function that it returns waits for.
func (b *books) connect(ctx context.Context) (answered func()) {
	b.t.Helper()
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", b.addr)
	if err != nil {
		b.t.Fatalf("while no server runs: %v", err)
	}
	b.mu.Lock()
	b.clock++
	body := fmt.Sprint("early-", b.clock)
	b.mu.Unlock()
	b.note(body, asked)
	fmt.Fprintf(nc, "put 0 0 60 %d\r\n%s\r\n", len(body), body)
	return func() {
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(patience))
		var id uint64
		if line, err := bufio.NewReader(nc).ReadString('\n'); err != nil {
			b.t.Errorf("who came while no server ran: %v", err)
		} else if _, err := fmt.Sscanf(line, "INSERTED %d\r\n", &id); err != nil {
			b.t.Errorf("who came while no server ran is answered %q", line)
		} else {
			b.note(body, promised)
		}
	}
}

// await waits until n more jobs were deleted.
func (b *books) await(ctx context.Context, n int) {
	b.t.Helper()
	b.mu.Lock()
	n += b.count
	b.mu.Unlock()
	for {
		b.mu.Lock()
		count := b.count
		b.mu.Unlock()
		if count >= n {
			return
		}
		select {
		case <-b.progress:
		case <-ctx.Done():
			b.t.Fatalf("only %d jobs were deleted, want %d", count, n)
		}
	}
}

// awaitEmpty waits until the server has no jobs.
func (b *books) awaitEmpty(ctx context.Context) {
	b.t.Helper()
	c, err := b.dial(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	defer c.Close()
	for {
		stats, err := c.Stats(ctx)
		if err != nil {
			b.t.Fatal(err)
		}
		if stats.JobsReady+stats.JobsReserved+stats.JobsDelayed+stats.JobsBuried == 0 {
			return
		}
	}
}

// balance looks for jobs that were acknowledged and never came out. Of few jobs is
// it unknown whether they were deleted.
func (b *books) balance(unknown int) {
	b.t.Helper()
	puts, lost, doubtful := 0, 0, 0
	for body, o := range b.put {
		d, came := b.deleted[body]
		switch {
		case o == promised && !came:
			b.t.Errorf("%q was acknowledged, and is lost", body)
			lost++
		case came && d.acknowledged == 0:
			doubtful++
		}
		if o == promised {
			puts++
		}
	}
	b.t.Logf("%d jobs acknowledged, %d deletions; %d without an answer; %d lost", puts, b.count, doubtful, lost)
	if doubtful > unknown {
		b.t.Errorf("of %d jobs is not known whether they were deleted, at most %d can be", doubtful, unknown)
	}
}
