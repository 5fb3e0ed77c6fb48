package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
)

// A fleet is servers in memory, which can be away.
type fleet struct {
	*client.Servers
	srv  map[string]*beanpoletest.Server
	away sync.Map // addresses
}

func newFleet(t *testing.T, addrs ...string) *fleet {
	return newFleetWith(t, client.Options{}, addrs...)
}

func newFleetWith(t *testing.T, opt client.Options, addrs ...string) *fleet {
	f := &fleet{srv: map[string]*beanpoletest.Server{}}
	for i, addr := range addrs {
		addrs[i] = addr + ":11300"
		f.srv[addrs[i]] = beanpoletest.NewMemory(t)
	}
	opt.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if _, away := f.away.Load(addr); away {
			return nil, errors.New("away")
		}
		return f.srv[addr].Dial(ctx, network, addr)
	}
	var err error
	f.Servers, err = client.NewServers(addrs, &client.PoolOptions{Options: opt})
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// Jobs with a key go to one server, jobs without to all in turn, and from all
// they come in turn.
func TestServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		f := newFleet(t, "a", "b", "c")
		home := f.Order("customer 7")[0]
		for range 5 {
			if id := get(f.Put(ctx, "customer 7", client.NewJob{Tube: "keyed"})); id.Server != home {
				t.Errorf("on %s, want %s", id.Server, home)
			}
		}
		count := map[string]int{}
		for range 9 {
			count[get(f.Put(ctx, "", client.NewJob{})).Server]++
		}
		if count["a:11300"] != 3 || count["b:11300"] != 3 || count["c:11300"] != 3 {
			t.Errorf("put %v", count)
		}
		for i := range 9 {
			job := get(f.Reserve(ctx))
			count[job.Server()]--
			if i%3 == 2 && (count["a:11300"] != count["b:11300"] || count["b:11300"] != count["c:11300"]) {
				t.Errorf("after %d: %v", i+1, count)
			}
			if st := statsOfJob(t, f.Pool(job.Server()), job.ID); st.State != client.StateReserved {
				t.Errorf("%+v", st)
			}
			must(t, job.Delete(ctx))
			wantErr(t, f.Delete(ctx, job.JobID()), client.ErrNotFound)
		}
		wantErr(t, second(f.ReserveTimeout(ctx, 0)), client.ErrTimedOut)
		job := get(f.Reserve(ctx, "keyed"))
		must(t, job.Bury(ctx, 0))
		if st := statsOfJob(t, f.Pool(job.Server()), job.ID); st.State != client.StateBuried {
			t.Errorf("%+v", st)
		}
		must(t, f.Delete(ctx, job.JobID()))
		wantErr(t, f.Delete(ctx, client.JobID{Server: "x", ID: 1}), client.ErrInvalid)
	})
}

// It waits for a job on any server; the others keep theirs.
func TestServersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		f := newFleet(t, "a", "b", "c")
		for _, p := range f.Pools() {
			got := make(chan *client.Job)
			go func() { got <- get(f.Reserve(ctx)) }()
			synctest.Wait()
			for _, p := range f.Pools() {
				if st := statsOf(t, p); st.Waiting != 1 {
					t.Errorf("%d wait on %s", st.Waiting, p.Addr())
				}
			}
			get(p.Put(ctx, client.NewJob{}))
			job := <-got
			if job.Server() != p.Addr() {
				t.Errorf("from %s, want %s", job.Server(), p.Addr())
			}
			must(t, job.Delete(ctx))
			synctest.Wait()
			for _, p := range f.Pools() {
				if st := statsOf(t, p); st.Waiting != 0 {
					t.Errorf("%d wait on %s", st.Waiting, p.Addr())
				}
			}
		}
		// All at the same moment: one is given, none is lost.
		for _, p := range f.Pools() {
			get(p.Put(ctx, client.NewJob{Delay: 5 * time.Second}))
		}
		for left := range 3 {
			job := get(f.ReserveTimeout(ctx, 10*time.Second))
			synctest.Wait()
			ready := 0
			for _, p := range f.Pools() {
				ready += int(statsOf(t, p).JobsReady)
			}
			if ready != 2-left {
				t.Errorf("%d are ready, want %d", ready, 2-left)
			}
			must(t, job.Delete(ctx))
		}
		began := time.Now()
		wantErr(t, second(f.ReserveTimeout(ctx, 10*time.Second)), client.ErrTimedOut)
		if took := time.Since(began).Round(time.Millisecond); took != 10*time.Second {
			t.Errorf("took %v", took)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		wantErr(t, second(f.Reserve(short)), context.DeadlineExceeded)
	})
}

// A server that is away, draining, or comes back.
func TestServersFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		f := newFleet(t, "a", "b", "c")
		order := f.Order("k")
		f.away.Store(order[0], true)
		for range 3 {
			if id := get(f.Put(ctx, "k", client.NewJob{})); id.Server != order[1] {
				t.Errorf("on %s, want %s", id.Server, order[1])
			}
		}
		f.srv[order[1]].Drain()
		if id := get(f.Put(ctx, "k", client.NewJob{})); id.Server != order[2] {
			t.Errorf("on %s, want %s", id.Server, order[2])
		}
		wantErr(t, second(f.Put(ctx, "k", client.NewJob{Tube: "-"})), client.ErrInvalid)
		for range 4 {
			must(t, get(f.Reserve(ctx)).Delete(ctx))
		}
		// One comes back while a reserve waits.
		got := make(chan *client.Job)
		go func() { got <- get(f.Reserve(ctx)) }()
		synctest.Wait()
		f.away.Delete(order[0])
		time.Sleep(time.Minute) // of fake time
		get(f.Pool(order[0]).Put(ctx, client.NewJob{}))
		if job := <-got; job.Server() != order[0] {
			t.Errorf("from %s", job.Server())
		} else {
			must(t, job.Delete(ctx))
		}
		if id := get(f.Put(ctx, "k", client.NewJob{})); id.Server != order[0] {
			t.Errorf("on %s, want %s", id.Server, order[0])
		}
		for addr := range f.srv {
			f.away.Store(addr, true)
			f.srv[addr].Close()
		}
		wantErr(t, second(f.Put(ctx, "", client.NewJob{})), client.ErrDisconnected)
		wantErr(t, second(f.Reserve(ctx)), client.ErrDisconnected)
	})
}

// A reserve goes on for as long as it was asked to when no server can be reached, and
// says what then.
func TestServersReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		f := newFleetWith(t, client.Options{Reconnect: 20 * time.Second}, "a", "b")
		f.away.Store("a:11300", true)
		f.away.Store("b:11300", true)
		wantErr(t, second(f.ReserveTimeout(ctx, 0)), client.ErrDisconnected) // it does not wait
		for range 2 {
			began := time.Now()
			err := second(f.Reserve(ctx))
			var e *client.Error
			if wantErr(t, err, client.ErrDisconnected); !errors.As(err, &e) || e.Addr == "" || e.Verb == "" {
				t.Errorf("%#v", err)
			}
			if took := time.Since(began).Round(time.Second); took != 20*time.Second {
				t.Errorf("it went on for %v", took)
			}
		}
		err := second(f.ReserveTimeout(ctx, time.Second))
		wantErr(t, err, client.ErrTimedOut)
		wantErr(t, err, client.ErrDisconnected)
		f.away.Delete("b:11300")
		get(f.Put(ctx, "", client.NewJob{}))
		must(t, get(f.Reserve(ctx)).Delete(ctx))
		err = second(f.ReserveTimeout(ctx, time.Second))
		if wantErr(t, err, client.ErrTimedOut); errors.Is(err, client.ErrDisconnected) {
			t.Errorf("one server has answered: %v", err)
		}

		h := newFleet(t, "a", "b")
		h.away.Store("a:11300", true)
		h.away.Store("b:11300", true)
		got := make(chan *client.Job)
		go func() { got <- get(h.Reserve(ctx)) }()
		synctest.Wait()
		h.away.Delete("b:11300")
		get(h.Put(ctx, "", client.NewJob{}))
		must(t, (<-got).Delete(ctx))
		// One is there: the other is not waited for, and the wait has no end.
		go func() { got <- get(h.Reserve(ctx)) }()
		time.Sleep(time.Hour) // of fake time
		get(h.Put(ctx, "", client.NewJob{}))
		must(t, (<-got).Delete(ctx))
		// The deadline of a context is a timeout, too.
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err = second(h.Reserve(short))
		var e *client.Error
		wantErr(t, err, context.DeadlineExceeded)
		if wantErr(t, err, client.ErrTimedOut); !errors.As(err, &e) {
			t.Errorf("%#v", err)
		}

		i := newFleetWith(t, client.Options{Reconnect: client.Never}, "a")
		i.away.Store("a:11300", true)
		began := time.Now()
		wantErr(t, second(i.Reserve(ctx)), client.ErrDisconnected)
		if took := time.Since(began); took != 0 {
			t.Errorf("it waited %v, and was told not to", took)
		}
	})
}

// A put that may have been done is not done elsewhere.
func TestServersOutcomeUnknown(t *testing.T) {
	a := play(t, listen(t), "> put 1024 0 60 0\n> \n") // and closes
	srv := beanpoletest.NewServer(t)
	s := get(client.NewServers([]string{a, srv.Addr}, nil))
	defer s.Close()
	key := ""
	for i := 0; key == ""; i++ {
		if k := fmt.Sprint(i); s.Order(k)[0] == a {
			key = k
		}
	}
	wantErr(t, second(s.Put(t.Context(), key, client.NewJob{})), client.ErrOutcomeUnknown)
	if st := statsOf(t, s.Pool(srv.Addr)); st.TotalJobs != 0 {
		t.Error("it was put twice")
	}
}

// A server more takes its share and moves nothing else.
func TestServersOrder(t *testing.T) {
	three := get(client.NewServers([]string{"a", "b", "c"}, nil))
	four := get(client.NewServers([]string{"d", "c", "b", "a"}, nil))
	count := map[string]int{}
	for i := range 8000 {
		key := fmt.Sprint("key ", i)
		old, now := three.Order(key), four.Order(key)
		count[now[0]]++
		now = slices.DeleteFunc(now, func(s string) bool { return s == "d" })
		if !slices.Equal(old, now) {
			t.Fatalf("%s: %q became %q", key, old, now)
		}
	}
	for addr, n := range count {
		if n < 1800 || n > 2200 {
			t.Errorf("%d of 8000 keys are on %s", n, addr)
		}
	}
	// The hash is the same in every program and version.
	if got := strings.Join(four.Order("customer 7"), " "); got != "c a b d" {
		t.Errorf("the order of a key has changed: %s", got)
	}
	for _, addrs := range [][]string{nil, {"a", "a"}, {"unix:"}} {
		wantErr(t, second(client.NewServers(addrs, nil)), client.ErrInvalid)
	}
}

func TestJobID(t *testing.T) {
	for _, id := range []client.JobID{{Server: "10.0.0.1:11300", ID: 7}, {Server: "unix:/run/bean.sock", ID: 1<<64 - 1}} {
		text := get(json.Marshal(id))
		var got client.JobID
		if err := json.Unmarshal(text, &got); err != nil || got != id {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, s := range []string{"", "7", "/7", "a/", "a/x", "a/-1"} {
		wantErr(t, second(client.ParseJobID(s)), client.ErrInvalid)
	}
}
