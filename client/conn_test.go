package client_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/test/freeport"
)

// Each command works with each server.
func TestCommands(t *testing.T) {
	eachServer(t, func(t *testing.T, addr string) {
		ctx := t.Context()
		c := dial(t, addr, nil)
		must(t, c.Ping(ctx))
		must(t, c.WatchOnly(ctx, "mail"))
		if tubes := get(c.ListTubes(ctx)); !slices.Equal(tubes, []string{"default", "mail"}) {
			t.Errorf("tubes %q", tubes)
		}

		id := get(c.Put(ctx, client.NewJob{Tube: "mail", Body: []byte("a\r\nb"), Priority: new(uint32(7)), TTR: 90 * time.Second}))
		late := get(c.Put(ctx, client.NewJob{Tube: "mail", Body: nil, Delay: time.Hour}))
		want := peeked{id, "a\r\nb"}
		same(t, string(get(c.Peek(ctx, id))), want.body)
		same(t, get(peekTube(t, c, client.StateReady)), want)
		same(t, get(peekTube(t, c, client.StateDelayed)), peeked{id: late})
		wantErr(t, second(peekTube(t, c, client.StateBuried)), client.ErrNotFound)
		wantErr(t, second(c.Peek(ctx, 99)), client.ErrNotFound)

		job := get(c.Reserve(ctx))
		same(t, peeked{job.ID, string(job.Body)}, want)
		if job.Server() != addr {
			t.Errorf("the job is from %q", job.Server())
		}
		must(t, job.Touch(ctx))
		st := get(job.Stats(ctx))
		if st.State != client.StateReserved || st.TTR != 90*time.Second || st.TimeLeft < time.Minute || st.TimeLeft >= 90*time.Second || st.Priority != 7 || st.Tube != "mail" || st.Reserves != 1 || st.ID != id {
			t.Errorf("%+v", st)
		}
		must(t, c.Bury(ctx, job.ID, 8))
		same(t, get(peekTube(t, c, client.StateBuried)), want)
		if n := get(c.Kick(ctx, "mail", client.All)); n != 1 {
			t.Errorf("kicked %d", n)
		}
		job = get(c.ReserveTimeout(ctx, 0))
		must(t, c.Release(ctx, job.ID, 9, 1500*time.Millisecond))
		if st := get(c.StatsJob(ctx, id)); st.State != client.StateDelayed || st.Priority != 9 || st.Delay != 2*time.Second || st.Buries != 1 || st.Releases != 1 || st.Kicks != 1 {
			t.Errorf("%+v", st)
		}
		must(t, c.KickJob(ctx, id))
		wantErr(t, c.KickJob(ctx, id), client.ErrNotFound)
		must(t, get(c.ReserveJob(ctx, late)).Delete(ctx))
		must(t, c.Delete(ctx, id))
		wantErr(t, c.Delete(ctx, id), client.ErrNotFound)
		wantErr(t, c.Touch(ctx, id), client.ErrNotFound)
		wantErr(t, c.Release(ctx, id, 0, 0), client.ErrNotFound)
		wantErr(t, c.Bury(ctx, id, 0), client.ErrNotFound)
		wantErr(t, second(c.ReserveTimeout(ctx, 0)), client.ErrTimedOut)

		must(t, c.PauseTube(ctx, "mail", time.Minute))
		wantErr(t, c.PauseTube(ctx, "nothing", 0), client.ErrNotFound)
		tube := get(c.StatsTube(ctx, "mail"))
		if tube.Name != "mail" || tube.Pause != time.Minute || tube.PauseLeft == 0 || tube.TotalJobs != 2 || tube.CmdDelete != 2 || tube.Using != 1 || tube.All["pause"] != "60" {
			t.Errorf("%+v", tube)
		}
		wantErr(t, second(c.StatsTube(ctx, "nothing")), client.ErrNotFound)
		wantErr(t, second(c.StatsJob(ctx, id)), client.ErrNotFound)
		server := get(c.Stats(ctx))
		if server.Commands["put"] != 2 || server.Commands["delete"] != 3 || server.MaxJobSize != 65535 || server.PID == 0 || server.All["cmd-put"] != "2" || server.OS == "" || strings.HasPrefix(server.Version, `"`) {
			t.Errorf("%+v", server)
		}
		wantErr(t, second(c.Put(ctx, client.NewJob{Body: make([]byte, 65536)})), client.ErrJobTooBig)
		must(t, c.Ping(ctx)) // checks that the replies are still in step
	})
}

// Every entry of the statistics of tubes and jobs has a field.
func TestStatsFields(t *testing.T) {
	ctx := t.Context()
	c := dial(t, start(t), nil)
	id := get(c.Put(ctx, client.NewJob{}))
	tube, job := get(c.StatsTube(ctx, "default")), get(c.StatsJob(ctx, id))
	for _, st := range []struct {
		entries map[string]string
		fields  any
	}{{tube.All, *tube}, {job.All, *job}} {
		fields := map[string]bool{}
		for _, f := range reflect.VisibleFields(reflect.TypeOf(st.fields)) {
			fields[f.Tag.Get("stats")] = true
		}
		for key := range st.entries {
			if !fields[key] {
				t.Errorf("%T has no field for %s", st.fields, key)
			}
		}
	}
}

// The client does not send invalid commands.
func TestInvalid(t *testing.T) {
	ctx := t.Context()
	c := dial(t, start(t), nil)
	for _, err := range []error{
		c.WatchOnly(ctx, "-x"), c.WatchOnly(ctx, ""), c.WatchOnly(ctx, "a\r\nquit"), c.WatchOnly(ctx, strings.Repeat("x", 201)), c.PauseTube(ctx, "a\n", 0), second(c.StatsTube(ctx, "ä")),
		c.PauseTube(ctx, "a", -1), second(c.ReserveTimeout(ctx, -2)), c.Release(ctx, 1, 0, -time.Second),
		second(c.Put(ctx, client.NewJob{Tube: "-"})), second(c.Put(ctx, client.NewJob{Tube: "a b"})),
		second(c.Put(ctx, client.NewJob{Delay: -1})), second(c.Put(ctx, client.NewJob{TTR: -1})),
		second(c.Put(ctx, client.NewJob{Delay: 1 << 32 * time.Second})),
		second(c.Kick(ctx, "", -1)), second(c.Kick(ctx, "", 0)),
		c.WatchOnly(ctx), c.WatchOnly(ctx, "a", "b c"),
	} {
		wantErr(t, err, client.ErrInvalid)
		var e *client.Error
		if !errors.As(err, &e) || e.Addr != c.Addr() || e.Verb == "" {
			t.Errorf("%#v", err)
		}
	}
	if st := get(c.Stats(ctx)); st.Commands["use"]+st.Commands["watch"]+st.Commands["ignore"]+st.Commands["put"]+st.Commands["reserve-with-timeout"]+st.Commands["kick"] != 0 {
		t.Errorf("something was sent: %+v", st)
	}
}

// Priority 0 is the most urgent one, and the default is 1024. Release and bury keep a
// job's priority, even if the server does not send it with the job.
func TestPriority(t *testing.T) {
	ctx := t.Context()
	addr := start(t)
	for _, c := range []*client.Conn{dial(t, addr, nil), dial(t, addr, &client.Options{Facts: true})} {
		for want, p := range map[uint32]*uint32{client.DefaultPriority: nil, 0: new(uint32(0)), 1: new(uint32(1)), 1<<32 - 1: new(uint32(1<<32 - 1))} {
			id := get(c.Put(ctx, client.NewJob{Priority: p}))
			has := func(did string, want uint32) {
				t.Helper()
				if st := get(c.StatsJob(ctx, id)); st.Priority != want {
					t.Errorf("%s: priority %d, want %d", did, st.Priority, want)
				}
			}
			has("put", want)
			must(t, get(c.ReserveJob(ctx, id)).Release(ctx, 0))
			has("released", want)
			must(t, get(c.ReserveJob(ctx, id)).Bury(ctx))
			has("buried", want)
			get(c.ReserveJob(ctx, id))
			must(t, c.Release(ctx, id, 0, 0))
			has("released with another", 0)
			get(c.ReserveJob(ctx, id))
			must(t, c.Bury(ctx, id, 5))
			has("buried with another", 5)
		}
	}
}

// Errors contain verb, job, tube and address as fields.
func TestErrorFields(t *testing.T) {
	ctx := t.Context()
	c := dial(t, start(t), nil)
	p := newPool(t, c.Addr(), nil)
	for _, tc := range []struct {
		err  error
		want client.Error
		text string
	}{
		{c.Delete(ctx, 7), client.Error{Verb: "delete", Job: 7}, "delete 7: not found"},
		{p.Delete(ctx, 7), client.Error{Verb: "delete", Job: 7}, "delete 7: not found"},
		{c.PauseTube(ctx, "fax", 0), client.Error{Verb: "pause-tube", Tube: "fax"}, "pause-tube fax: not found"},
		{second(peekTube(t, c, client.StateBuried)), client.Error{Verb: "peek-buried", Tube: "mail"}, "peek-buried mail: not found"},
	} {
		var e *client.Error
		if !errors.As(tc.err, &e) || !errors.Is(tc.err, client.ErrNotFound) {
			t.Fatalf("%#v", tc.err)
		}
		tc.want.Addr, tc.want.Err = c.Addr(), e.Err
		if *e != tc.want || e.Error() != c.Addr()+": "+tc.text {
			t.Errorf("%v: %+v, want %+v", e, *e, tc.want)
		}
	}
	err := second(c.Put(ctx, client.NewJob{Tube: "fax", Body: make([]byte, 1<<17)}))
	var e *client.Error
	if !errors.As(err, &e) || e.Verb != "put" || e.Tube != "fax" || !errors.Is(err, client.ErrJobTooBig) {
		t.Errorf("%#v", err)
	}
}

func TestFlushTube(t *testing.T) {
	eachServer(t, func(t *testing.T, addr string) {
		ctx := t.Context()
		c := dial(t, addr, nil)
		get(c.PutMany(ctx, make([]client.NewJob, 10)))
		n, err := c.FlushTube(ctx, "default", client.StateReady, 4)
		if get(c.Stats(ctx)).Server != "beanpole" {
			wantErr(t, err, client.ErrUnknownCommand)
			return
		}
		if more := get(c.FlushTube(ctx, "default", client.StateReady, client.All)); err != nil || n != 4 || more != 6 {
			t.Errorf("flushed %d, %v, then %d", n, err, more)
		}
		wantErr(t, second(c.FlushTube(ctx, "nothing", client.StateReady, client.All)), client.ErrNotFound)
		for _, state := range []client.State{client.StateReserved, ""} {
			wantErr(t, second(c.FlushTube(ctx, "default", state, client.All)), client.ErrInvalid)
		}
		wantErr(t, second(c.FlushTube(ctx, "default", client.StateReady, 0)), client.ErrInvalid)
	})
}

func TestWatchOnly(t *testing.T) {
	ctx := t.Context()
	c := dial(t, start(t), nil)
	for _, tubes := range [][]string{{"a", "b"}, {"b"}, {"default", "a", "a"}, {"c"}, {"c"}} {
		must(t, c.WatchOnly(ctx, tubes...))
		got := watched(t, c)
		slices.Sort(got)
		slices.Sort(tubes)
		if diff := cmp.Diff(slices.Compact(tubes), got); diff != "" {
			t.Error(diff)
		}
	}
}

// Close ends the current command and all later ones.
func TestClose(t *testing.T) {
	c := dial(t, start(t), nil)
	other := dial(t, c.Addr(), nil)
	reserved := make(chan error)
	go func() { reserved <- second(c.Reserve(context.Background())) }()
	awaitWaiting(t, other, 1)
	must(t, c.Close())
	wantErr(t, <-reserved, client.ErrClosed)
	wantErr(t, c.Ping(t.Context()), client.ErrClosed)
	must(t, c.Close())
}

func TestDialErrors(t *testing.T) {
	port := get(freeport.Reserve())
	defer port.Release()
	wantErr(t, second(client.Dial(t.Context(), "127.0.0.1:"+port.String(), nil)), client.ErrDisconnected)
	for _, addr := range []string{"unix:", "a:b:c", "[::1"} {
		wantErr(t, second(client.Dial(t.Context(), addr, nil)), client.ErrInvalid)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, second(client.Dial(ctx, start(t), nil)), context.Canceled)
	for _, opt := range []*client.Options{{Token: "a b"}, {Token: strings.Repeat("x", 218)}} {
		wantErr(t, second(client.Dial(t.Context(), start(t), opt)), client.ErrInvalid)
	}
}

func same[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%v, want %v", got, want)
	}
}
