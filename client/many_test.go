package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/beanpoletest"
)

// Batches of all sizes work, in particular at the sizes at which the client changes its
// way of writing.
func TestMany(t *testing.T) {
	eachServer(t, func(t *testing.T, addr string) {
		ctx := t.Context()
		c := dial(t, addr, nil)
		for _, tc := range []struct{ n, size int }{{0, 1}, {1, 0}, {2, 10}, {128, 1}, {129, 60000}, {128, 60000}, {5000, 100}} {
			t.Run(fmt.Sprintf("%d of %d bytes", tc.n, tc.size), func(t *testing.T) {
				jobs := make([]client.NewJob, tc.n)
				for i := range jobs {
					jobs[i].Body = bytes.Repeat([]byte{byte(i)}, tc.size)
				}
				ids := get(c.PutMany(ctx, jobs))
				if len(ids) != tc.n || !slices.IsSorted(ids) {
					t.Fatalf("%d ids: %d", len(ids), ids)
				}
				if tc.n == 0 {
					return
				}
				var got []*client.Job
				for len(got) < tc.n { // a batch can contain fewer jobs than are ready
					got = append(got, get(c.ReserveMany(ctx, tc.n+10, time.Hour))...)
				}
				for i, job := range got {
					if job.ID != ids[i] || !bytes.Equal(job.Body, jobs[i].Body) {
						t.Fatalf("job %d is %d with %d bytes", i, job.ID, len(job.Body))
					}
				}
				must(t, c.Release(ctx, got[0].ID, 7, time.Hour))
				must(t, c.DeleteMany(ctx, ids))
				wantErr(t, second(c.ReserveMany(ctx, 3, 0)), client.ErrTimedOut)
			})
		}
	})
}

// A failure in a batch does not affect the other jobs, and each failure is reported.
func TestManyPartly(t *testing.T) {
	eachServer(t, func(t *testing.T, addr string) {
		ctx := t.Context()
		c := dial(t, addr, nil)
		ids, err := c.PutMany(ctx, []client.NewJob{
			{Tube: "a"}, {Tube: "b", Body: make([]byte, 65536)}, {Tube: "b"}, {Tube: "a"},
		})
		wantErrs(t, err, nil, client.ErrJobTooBig, nil, nil)
		for i, want := range []string{"a", "", "b", "a"} {
			if want == "" {
				if ids[i] != 0 {
					t.Errorf("a refused job has the id %d", ids[i])
				}
			} else if st := get(c.StatsJob(ctx, ids[i])); st.Tube != want {
				t.Errorf("job %d is in %q", i, st.Tube)
			}
		}
		tubes, err := c.StatsTubeMany(ctx, []string{"b", "none", "a"})
		if wantErrs(t, err, nil, client.ErrNotFound, nil); tubes[0].JobsReady != 1 || tubes[1] != nil || tubes[2].Name != "a" {
			t.Error(tubes)
		}
		wantErrs(t, c.DeleteMany(ctx, []uint64{ids[0], 99, ids[2], ids[0]}), nil, client.ErrNotFound, nil, client.ErrNotFound)

		// A batch with an invalid job is not sent.
		wantErr(t, second(c.PutMany(ctx, []client.NewJob{{}, {Tube: "-"}})), client.ErrInvalid)
		wantErr(t, second(c.PutMany(ctx, []client.NewJob{{}, {Delay: -1}})), client.ErrInvalid)
		wantErr(t, second(c.StatsTubeMany(ctx, []string{"a", "b c"})), client.ErrInvalid)
		wantErr(t, second(c.ReserveMany(ctx, 0, 0)), client.ErrInvalid)
		wantErr(t, second(c.ReserveMany(ctx, 1, -2)), client.ErrInvalid)
		if st := get(c.Stats(ctx)); st.TotalJobs != 3 {
			t.Errorf("%d jobs in all", st.TotalJobs)
		}
	})
}

// ReserveMany waits only for the first job.
func TestReserveManyWaits(t *testing.T) {
	ctx := t.Context()
	c := dial(t, start(t), nil)
	other := dial(t, c.Addr(), nil)
	got := make(chan int)
	go func() { got <- len(get(c.ReserveMany(ctx, 500, time.Hour))) }()
	awaitWaiting(t, other, 1)
	get(other.Put(ctx, client.NewJob{}))
	if n := <-got; n != 1 {
		t.Errorf("%d jobs", n)
	}
}

// If the context of a batch ends, the client drops the connection, as for a single
// command.
func TestManyCancelled(t *testing.T) {
	c := dial(t, start(t), nil)
	other := dial(t, c.Addr(), nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	reserved := make(chan error)
	go func() { reserved <- second(c.ReserveMany(ctx, 500, time.Hour)) }()
	awaitWaiting(t, other, 1)
	cancel(cause)
	wantErr(t, <-reserved, cause)
	wantErr(t, second(c.PutMany(ctx, make([]client.NewJob, 2))), cause)
	awaitWaiting(t, other, 0)
	get(other.Put(t.Context(), client.NewJob{}))
	get(c.ReserveMany(t.Context(), 2, 0))
}

// wantErrs checks that err is a *BatchError that contains the given errors.
func wantErrs(t *testing.T, err error, want ...error) {
	t.Helper()
	var batch *client.BatchError
	if !errors.As(err, &batch) || len(batch.Errs) != len(want) {
		t.Fatalf("%v, want a BatchError of %d", err, len(want))
	}
	for i, err := range batch.Errs {
		if !errors.Is(err, want[i]) {
			t.Errorf("%d: %v, want %v", i, err, want[i])
		}
	}
}

// awaitWaiting returns when n connections wait in a reserve.
func awaitWaiting(t *testing.T, c *client.Conn, n uint64) {
	t.Helper()
	for get(c.Stats(t.Context())).Waiting != n {
	}
}

// awaitAlone returns the server's statistics when this connection is its only one, and no
// job is reserved.
func awaitAlone(t *testing.T, c *client.Conn) *client.ServerStats {
	t.Helper()
	for {
		if st := get(c.Stats(t.Context())); st.Connections == 1 && st.JobsReserved == 0 {
			return st
		}
	}
}

// If the server does not support reserve-batch, the client sends a command for each job
// of a batch.
func TestBatches(t *testing.T) {
	eachServer(t, func(t *testing.T, addr string) {
		ctx := t.Context()
		c := dial(t, addr, &client.Options{Facts: true})
		known := len(get(c.Caps(ctx))) > 0
		if known != strings.HasSuffix(t.Name(), "beanpole") {
			t.Errorf("caps: %q", get(c.Caps(ctx)))
		}
		jobs := make([]client.NewJob, 300)
		for i := range jobs {
			jobs[i] = client.NewJob{Priority: new(uint32(i + 1)), Body: fmt.Append(nil, i), TTR: time.Hour}
		}
		ids := get(c.PutMany(ctx, jobs))
		wantErr(t, second(c.ReserveMany(ctx, 0, 0)), client.ErrInvalid)
		got := get(c.ReserveMany(ctx, 100, time.Minute))
		for len(got) < 200 { // a batch can contain fewer jobs
			got = append(got, get(c.ReserveMany(ctx, 200-len(got), client.Never))...)
		}
		for i, job := range got {
			if job.ID != ids[i] || !bytes.Equal(job.Body, jobs[i].Body) {
				t.Fatalf("job %d is %d, %q", i, job.ID, job.Body)
			}
			want := &client.JobStats{ID: job.ID, Tube: "default", State: client.StateReserved, Priority: uint32(i + 1), Reserves: 1, TTR: time.Hour}
			if known && !reflect.DeepEqual(job.Facts, want) || !known && job.Facts != nil {
				t.Fatalf("facts: %+v", job.Facts)
			}
		}
		must(t, c.DeleteMany(ctx, ids[:200]))
		last := get(c.ReserveMany(ctx, 2, 0))
		told := 0
		more := get(c.DeleteAndReserve(ctx, []uint64{last[0].ID, 0, last[1].ID}, 3, func(i int, err error) {
			if told++; (i == 1) != errors.Is(err, client.ErrNotFound) || i != 1 && err != nil {
				t.Errorf("delete %d: %v", i, err)
			}
		}))
		if told != 3 || len(more) == 0 {
			t.Errorf("%d deletes, %d jobs", told, len(more))
		}
		must(t, c.DeleteMany(ctx, ids[202+len(more):]))
		wantErr(t, second(c.ReserveMany(ctx, 5, 0)), client.ErrTimedOut)
		wantErr(t, second(c.DeleteAndReserve(ctx, []uint64{more[0].ID}, 5, nil)), client.ErrTimedOut)
	})
}

// A worker with many jobs deletes all of them and reserves the same number in one round
// trip.
func TestBatchesAtOnce(t *testing.T) {
	const n = 100
	ctx := t.Context()
	writes := 0
	c := dial(t, beanpoletest.NewServer(t).Addr, &client.Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, addr)
		return countedConn{nc, &writes}, err
	}})
	get(c.PutMany(ctx, make([]client.NewJob, 2*n)))
	var ids []uint64
	for _, job := range get(c.ReserveMany(ctx, n, 0)) {
		ids = append(ids, job.ID)
	}
	writes = 0
	if jobs := get(c.DeleteAndReserve(ctx, ids, n, nil)); len(ids) != n || len(jobs) != n || writes != 1 {
		t.Errorf("%d jobs, then %d with %d writes", len(ids), len(jobs), writes)
	}
}

// If the server supports notes, the client sends a reason before the release or bury, in
// the same write.
func TestReason(t *testing.T) {
	eachServer(t, func(t *testing.T, addr string) {
		ctx := t.Context()
		var last []byte
		c := dial(t, addr, &client.Options{Facts: true, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, network, addr)
			return recordedConn{nc, &last}, err
		}})
		notes := slices.Contains(get(c.Caps(ctx)), "note")
		id := get(c.Put(ctx, client.NewJob{}))
		for end, give := range map[string]func(*client.Job) error{
			"release %d 1024 0\r\n": func(j *client.Job) error { return j.Release(ctx, 0) },
			"bury %d 1024\r\n":      func(j *client.Job) error { return j.Bury(ctx) },
		} {
			for reason, note := range map[string]string{"": "", "\r\n \xff\u0085": "", " Why: \n\tit\x00failed ": "note %d Why: it failed\r\n", strings.Repeat("é", 200): "note %d " + strings.Repeat("é", 100) + "\r\n"} {
				job := get(c.ReserveJob(ctx, id))
				job.Reason = reason
				must(t, give(job))
				want := fmt.Sprintf(end, id)
				if notes && note != "" {
					want = fmt.Sprintf(note, id) + want
				}
				if got := string(last); got != want {
					t.Errorf("%q was sent, want %q", got, want)
				}
			}
		}
	})
}

type recordedConn struct {
	net.Conn
	last *[]byte
}

func (c recordedConn) Write(p []byte) (int, error) {
	*c.last = bytes.Clone(p)
	return c.Conn.Write(p)
}

type countedConn struct {
	net.Conn
	writes *int
}

func (c countedConn) Write(p []byte) (int, error) {
	*c.writes++
	return c.Conn.Write(p)
}
