package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
)

// A fleet contains servers in memory, each of which can be made unreachable.
type fleet struct {
	*client.Servers
	srv  map[string]*beanpoletest.Server
	away map[string]bool
}

func newFleet(t *testing.T, addrs ...string) *fleet {
	f := &fleet{srv: map[string]*beanpoletest.Server{}, away: map[string]bool{}}
	for i, addr := range addrs {
		addrs[i] = addr + ":11300"
		f.srv[addrs[i]] = beanpoletest.NewMemory(t)
	}
	opt := client.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if f.away[addr] {
			return nil, errors.New("away")
		}
		return f.srv[addr].Dial(ctx, network, addr)
	}}
	var err error
	f.Servers, err = client.NewServers(addrs, &opt)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// Jobs with the same key go to the same server. Jobs without a key go to all servers in
// turn. A job's id contains its server.
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
		job := get(f.Pool(home).Reserve(ctx, "keyed"))
		must(t, job.Bury(ctx))
		must(t, f.Delete(ctx, job.JobID()))
		wantErr(t, f.Delete(ctx, job.JobID()), client.ErrNotFound)
		wantErr(t, f.Delete(ctx, client.JobID{Server: "x", ID: 1}), client.ErrInvalid)
	})
}

// Puts go to other servers while a server is unreachable or drains, and come back when it
// returns.
func TestServersFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		f := newFleet(t, "a", "b", "c")
		order := f.Order("k")
		f.away[order[0]] = true
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
		// The client avoids the server for some time, and then uses it again.
		delete(f.away, order[0])
		if id, err := f.Put(ctx, "k", client.NewJob{}); err != nil || id.Server != order[2] {
			t.Errorf("on %s, %v, want %s", id.Server, err, order[2])
		}
		time.Sleep(time.Minute) // in fake time
		if id := get(f.Put(ctx, "k", client.NewJob{})); id.Server != order[0] {
			t.Errorf("on %s, want %s", id.Server, order[0])
		}
		for _, p := range f.Pools() {
			f.away[p.Addr()] = true
			f.srv[p.Addr()].Close()
		}
		wantErr(t, second(f.Put(ctx, "", client.NewJob{})), client.ErrDisconnected)
	})
}

// The token of an address affects neither the order of the servers nor the ids of jobs,
// so a new token moves no key. An id from a put equals the id of the reserved job.
func TestServersToken(t *testing.T) {
	ctx := t.Context()
	const token = "0123456789abcdefghij"
	srv := beanpoletest.New(t, beanpoletest.Options{Token: token})
	s := get(client.NewServers([]string{"beanpole://" + token + "@" + srv.Addr}, nil))
	defer s.Close()
	if got := s.Order("k"); !slices.Equal(got, []string{srv.Addr}) {
		t.Errorf("the order is %q", got)
	}
	id := get(s.Put(ctx, "k", client.NewJob{}))
	job := get(s.Pool(id.Server).Reserve(ctx))
	if id != job.JobID() || id != (client.JobID{Server: srv.Addr, ID: 1}) {
		t.Errorf("put %v, reserved %v", id, job.JobID())
	}
	must(t, job.Release(ctx, 0))
	must(t, s.Delete(ctx, id))
	addrs := func(token string) []string {
		return []string{"beanpole://" + token + "@a:1", "beanpole://" + token + "@b:1"}
	}
	old, rotated := get(client.NewServers(addrs("old"), nil)), get(client.NewServers(addrs("new"), nil))
	for i := range 100 {
		if key := fmt.Sprint(i); !slices.Equal(old.Order(key), rotated.Order(key)) {
			t.Errorf("key %s moves with the token", key)
		}
	}
	_, err := client.NewServers([]string{"a:1", "beanpole://token@a:1"}, nil)
	wantErr(t, err, client.ErrInvalid)
}

// A put whose outcome is unknown is not repeated on another server.
func TestServersOutcomeUnknown(t *testing.T) {
	a := play(t, listen(t), "> put 1024 0 60 0\n> \n") // then closes the connection
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
	if st := get(s.Pool(srv.Addr).Stats(t.Context())); st.TotalJobs != 0 {
		t.Error("it was put twice")
	}
}

// An additional server gets its share of the keys. No other key moves.
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
		t.Errorf("the order of a key changed: %s", got)
	}
	for _, addrs := range [][]string{nil, {"a", "a"}, {"unix:"}} {
		wantErr(t, second(client.NewServers(addrs, nil)), client.ErrInvalid)
	}
}
