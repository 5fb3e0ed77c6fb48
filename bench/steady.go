package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

const (
	// steadyInterval is the time from one command of a steady client to the next: together
	// they are far from filling a server, as the clients of most queues are. Clients that send as fast
	// as they can take all processors for themselves, and so wait for them with every other process.
	steadyInterval = time.Millisecond

	// SteadyFlag makes a program that measures with SteadyClients their process: -steady ADDR.
	SteadyFlag = "steady"
)

// SteadyClients put, reserve and delete at a fixed rate, in a process of their own. It has real-time
// priority if this one may give it that, as root may: so what they wait for is the server, and no
// processor that others use.
type SteadyClients struct {
	process *exec.Cmd
	orders  io.WriteCloser
	results *json.Decoder
}

// StartSteady starts the process of clients of the server at addr, which is this program with
// SteadyFlag. They do nothing yet. They are to be closed, and end with ctx in any case.
func StartSteady(ctx context.Context, addr string) (*SteadyClients, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-"+SteadyFlag, addr) // #nosec G204 -- this program
	cmd.Stderr = os.Stderr
	orders, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	results, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := startUrgent(cmd); err != nil {
		return nil, fmt.Errorf("bench: start the clients: %w", err)
	}
	return &SteadyClients{cmd, orders, json.NewDecoder(results)}, nil
}

// Begin lets the clients work until End.
func (s *SteadyClients) Begin() error { return s.order() }

// End ends what Begin has begun, and returns what was measured: the latency and the throughput. Each client
// comes to the end of its cycle, so none leaves a job.
func (s *SteadyClients) End() (r load.Result, err error) {
	if err := s.order(); err != nil {
		return r, err
	}
	return r, s.results.Decode(&r)
}

func (s *SteadyClients) order() error {
	_, err := io.WriteString(s.orders, "\n")
	return err
}

// Close ends the process.
func (s *SteadyClients) Close() error { return errors.Join(s.orders.Close(), s.process.Wait()) }

// ServeSteady is the process of SteadyClients.
func ServeSteady(ctx context.Context, addr string) error {
	if !urgent() {
		fmt.Fprintln(os.Stderr, "The clients have no real-time priority, which root may give on Linux: they wait for processors as others do.")
	}
	orders, results := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for orders.Scan() {
		var over atomic.Bool
		go func() {
			orders.Scan()
			over.Store(true)
		}()
		r, err := steady(ctx, addr, over.Load)
		if err == nil {
			err = results.Encode(r)
		}
		if err != nil {
			return err
		}
	}
	return orders.Err()
}

// steady measures clients until over says that it is enough. Each looks after that when its job is
// deleted.
func steady(ctx context.Context, addr string, over func() bool) (load.Result, error) {
	var (
		mu       sync.Mutex
		recorder = load.NewRecorder(steadyInterval)
		commands int64
		clients  errgroup.Group
		begin    = time.Now()
	)
	for i := range interactiveClients {
		clients.Go(func() error {
			d, err := load.Dial(ctx, addr)
			if err != nil {
				return err
			}
			defer d.Close()
			if err := d.ChooseTube("interactive"); err != nil {
				return err
			}
			next := begin.Add(time.Duration(i) * steadyInterval / interactiveClients)
			timed := func(command []byte, want wire.ReplyKind) (*wire.Reply, error) {
				if err := sleep(ctx, time.Until(next)); err != nil {
					return nil, err
				}
				sent := time.Now()
				next = later(next.Add(steadyInterval), sent)
				r, err := d.Do(command, want)
				mu.Lock()
				defer mu.Unlock()
				recorder.Record(time.Since(sent))
				commands++
				return r, err
			}
			for { // once at least: clients that have done nothing have measured nothing
				if err := cycle(timed); err != nil || over() {
					return err
				}
			}
		})
	}
	if err := clients.Wait(); err != nil {
		return load.Result{}, err
	}
	return load.Result{Latency: recorder.Latency(), Throughput: float64(commands) / time.Since(begin).Seconds()}, nil
}

// cycle puts a job, reserves one and deletes that.
func cycle(do func(command []byte, want wire.ReplyKind) (*wire.Reply, error)) error {
	if _, err := do(wire.AppendPut(nil, 0, 0, jobTTR, make([]byte, 64)), wire.Inserted); err != nil {
		return err
	}
	r, err := do(wire.AppendReserve(nil), wire.Reserved)
	if err != nil {
		return err
	}
	_, err = do(wire.AppendDelete(nil, r.ID), wire.Deleted)
	return err
}

// later returns the later of two moments.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
