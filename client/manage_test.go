package client_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/test/conformance"
)

func TestJobs(t *testing.T) {
	ctx := t.Context()
	c := dial(t, start(t), nil)
	put := get(c.PutMany(ctx, []client.NewJob{
		{Tube: "mail", Priority: new(uint32(5)), Body: []byte("a")},
		{Tube: "mail", Priority: new(uint32(4)), TTR: 7 * time.Second, Body: []byte("bb")},
		{Tube: "mail", Delay: time.Hour},
		{Tube: "mail"},
	}))
	get(c.ReserveJob(ctx, put[3]))
	many := get(c.PutMany(ctx, make([]client.NewJob, 20_007))) // on three pages
	for _, tc := range []struct {
		of   client.Selection
		want []uint64
	}{
		{client.Selection{Tube: "mail", State: client.StateReady, Limit: client.All}, []uint64{put[1], put[0]}},
		{client.Selection{Tube: "mail", State: client.StateReady, Limit: 1}, put[1:2]},
		{client.Selection{Tube: "mail", State: client.StateDelayed, Limit: 5}, put[2:3]},
		{client.Selection{Tube: "mail", State: client.StateReserved, Limit: 5}, put[3:]},
		{client.Selection{Tube: "mail", State: client.StateBuried, Limit: 5}, nil},
		{client.Selection{Tube: "default", State: client.StateReady, Limit: client.All}, many},
		{client.Selection{Tube: "default", State: client.StateReady, Limit: 10_003}, many[:10_003]},
	} {
		var ids []uint64
		for job, err := range c.Jobs(ctx, tc.of) {
			must(t, err)
			if ids = append(ids, job.ID); job.Tube != tc.of.Tube || job.State != tc.of.State {
				t.Fatalf("%+v", job)
			}
		}
		if !slices.Equal(ids, tc.want) {
			t.Errorf("%+v: %d jobs, want %d", tc.of, len(ids), len(tc.want))
		}
	}
	for job := range c.Jobs(ctx, client.Selection{Tube: "mail", State: client.StateReady, Limit: client.All}) {
		if job.Priority != 4 || job.TTR != 7*time.Second || job.Size != 2 {
			t.Errorf("%+v", job)
		}
		break
	}
	wantErr(t, firstListed(ctx, c, client.Selection{Tube: "nothing", State: client.StateReady, Limit: 5}), client.ErrNotFound)
	wantErr(t, firstListed(ctx, c, client.Selection{Tube: "mail", State: client.StateReady, Limit: 0}), client.ErrInvalid)
	wantErr(t, firstListed(ctx, c, client.Selection{Tube: "mail", State: "any", Limit: 5}), client.ErrInvalid)
	wantErr(t, firstListed(ctx, c, client.Selection{Tube: "-", State: client.StateReady, Limit: 5}), client.ErrInvalid)
}

func firstListed(ctx context.Context, c *client.Conn, of client.Selection) error {
	for _, err := range c.Jobs(ctx, of) {
		return err
	}
	return nil
}

func TestFlushAndMove(t *testing.T) {
	ctx := t.Context()
	c := dial(t, start(t), nil)
	ids := get(c.PutMany(ctx, make([]client.NewJob, 10)))
	long := strings.Repeat("x", 200)
	if n := get(c.MoveJobs(ctx, client.Selection{Tube: "default", State: client.StateReady, Limit: 4}, long)); n != 4 {
		t.Errorf("moved %d", n)
	}
	if st := get(c.StatsJob(ctx, ids[3])); st.Tube != long {
		t.Errorf("%+v", st)
	}
	if n := get(c.MoveJobs(ctx, client.Selection{Tube: long, State: client.StateReady, Limit: 1}, strings.Repeat("y", 200))); n != 1 {
		t.Errorf("moved %d", n)
	}
	if n := get(c.MoveJobs(ctx, client.Selection{Tube: "default", State: client.StateReady, Limit: client.All}, long)); n != 6 {
		t.Errorf("moved %d", n)
	}
	if n := get(c.FlushTube(ctx, client.Selection{Tube: long, State: client.StateReady, Limit: 5})); n != 5 {
		t.Errorf("flushed %d", n)
	}
	if n := get(c.FlushTube(ctx, client.Selection{Tube: long, State: client.StateReady, Limit: client.All})); n != 4 {
		t.Errorf("flushed %d", n)
	}
	wantErr(t, second(c.FlushTube(ctx, client.Selection{Tube: "nothing", State: client.StateReady, Limit: client.All})), client.ErrNotFound)
	wantErr(t, second(c.FlushTube(ctx, client.Selection{Tube: long, State: client.StateReserved, Limit: client.All})), client.ErrInvalid)
	wantErr(t, second(c.FlushTube(ctx, client.Selection{Tube: long, State: "", Limit: client.All})), client.ErrInvalid)
	wantErr(t, second(c.FlushTube(ctx, client.Selection{Tube: long, State: client.StateReady, Limit: -1})), client.ErrInvalid)
	wantErr(t, second(c.FlushTube(ctx, client.Selection{Tube: long, State: client.StateReady})), client.ErrInvalid)
	wantErr(t, second(c.MoveJobs(ctx, client.Selection{Tube: long, State: client.StateReady, Limit: client.All}, "-")), client.ErrInvalid)
	wantErr(t, second(c.MoveJobs(ctx, client.Selection{Tube: long, State: client.StateReady, Limit: client.All}, long)), client.ErrNotFound)
}

// beanstalkd replies to these commands that they are unknown, and the connection stays
// open.
func TestManageBeanstalkd(t *testing.T) {
	ctx := t.Context()
	c := dial(t, conformance.Beanstalkd(t), nil)
	before := get(c.Stats(ctx)).TotalConnections
	ready := client.Selection{Tube: "mail", State: client.StateReady, Limit: 5}
	wantErr(t, firstListed(ctx, c, ready), client.ErrUnknownCommand)
	wantErr(t, second(c.FlushTube(ctx, ready)), client.ErrUnknownCommand)
	wantErr(t, second(c.MoveJobs(ctx, ready, "to")), client.ErrUnknownCommand)
	if st := get(c.Stats(ctx)); st.TotalConnections != before {
		t.Errorf("%d connections, earlier %d", st.TotalConnections, before)
	}
}
