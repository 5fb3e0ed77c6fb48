package client_test

import (
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/client"
)

func TestListJobs(t *testing.T) {
	ctx := t.Context()
	p := newPool(t, start(t), nil)
	c := dial(t, p.Addr(), nil)
	ids := get(c.PutMany(ctx, []client.NewJob{
		{Tube: "mail", Pri: 5, Body: []byte("a")},
		{Tube: "mail", Pri: 4, TTR: 7 * time.Second, Body: []byte("bb")},
		{Tube: "mail", Delay: time.Hour},
	}))
	jobs := get(p.ListJobs(ctx, "mail", client.StateReady, 1, ""))
	if len(jobs) != 1 || jobs[0].ID != ids[1] || jobs[0].Pri != 4 || jobs[0].TTR != 7*time.Second || jobs[0].Size != 2 || jobs[0].Tube != "mail" || jobs[0].State != client.StateReady {
		t.Errorf("%+v", jobs)
	}
	jobs = get(p.ListJobs(ctx, "mail", client.StateReady, 5, jobs[0].Cursor))
	if len(jobs) != 1 || jobs[0].ID != ids[0] {
		t.Errorf("%+v", jobs)
	}
	if jobs = get(p.ListJobs(ctx, "mail", client.StateReady, 5, jobs[0].Cursor)); len(jobs) != 0 {
		t.Errorf("%+v", jobs)
	}
	if jobs = get(p.ListJobs(ctx, "mail", client.StateDelayed, 5, "")); len(jobs) != 1 || jobs[0].TimeLeft < time.Hour-time.Minute || jobs[0].Delay != time.Hour {
		t.Errorf("%+v", jobs)
	}
	job := get(c.ReserveJob(ctx, ids[0]))
	if jobs = get(p.ListJobs(ctx, "mail", client.StateReserved, 5, "")); len(jobs) != 1 || jobs[0].ID != job.ID || jobs[0].Reserves != 1 {
		t.Errorf("%+v", jobs)
	}
	wantErr(t, second(p.ListJobs(ctx, "nothing", client.StateReady, 5, "")), client.ErrNotFound)
	wantErr(t, second(p.ListJobs(ctx, "mail", client.StateReady, 5, "x")), client.ErrBadFormat)
	wantErr(t, second(p.ListJobs(ctx, "mail", client.StateReady, 0, "")), client.ErrInvalid)
	wantErr(t, second(p.ListJobs(ctx, "mail", "any", 5, "")), client.ErrInvalid)
	wantErr(t, second(p.ListJobs(ctx, "-", client.StateReady, 5, "")), client.ErrInvalid)
}

// All jobs come, in order, however many they are; who has enough stops.
func TestJobs(t *testing.T) {
	ctx := t.Context()
	c := dial(t, start(t), nil)
	want := get(c.PutMany(ctx, make([]client.NewJob, 2*client.MaxListed+7)))
	n := 0
	for job, err := range c.Jobs(ctx, "default", client.StateReady) {
		if must(t, err); job.ID != want[n] {
			t.Fatalf("job %d comes, want %d", job.ID, want[n])
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d jobs", n)
	}
	for range c.Jobs(ctx, "default", client.StateReady) {
		break
	}
	for job, err := range c.Jobs(ctx, "nothing", client.StateReady) {
		if wantErr(t, err, client.ErrNotFound); job != nil {
			t.Errorf("%+v", job)
		}
	}
}

func TestFlushAndMove(t *testing.T) {
	ctx := t.Context()
	p := newPool(t, start(t), nil)
	ids := get(p.PutMany(ctx, make([]client.NewJob, 10)))
	long := strings.Repeat("x", 200)
	if n := get(p.MoveJobs(ctx, "default", long, client.StateReady, 4)); n != 4 {
		t.Errorf("moved %d", n)
	}
	if st := get(p.StatsJob(ctx, ids[3])); st.Tube != long {
		t.Errorf("%+v", st)
	}
	if n := get(p.MoveJobs(ctx, long, strings.Repeat("y", 200), client.StateReady, 1)); n != 1 {
		t.Errorf("moved %d", n)
	}
	if n := get(p.MoveJobs(ctx, "default", long, client.StateReady, 0)); n != 6 {
		t.Errorf("moved %d", n)
	}
	if n := get(p.FlushTube(ctx, long, client.StateReady, 5)); n != 5 {
		t.Errorf("flushed %d", n)
	}
	if n := get(p.FlushTube(ctx, long, client.StateReady, 0)); n != 4 {
		t.Errorf("flushed %d", n)
	}
	wantErr(t, second(p.FlushTube(ctx, "nothing", client.StateReady, 0)), client.ErrNotFound)
	wantErr(t, second(p.FlushTube(ctx, long, client.StateReserved, 0)), client.ErrInvalid)
	wantErr(t, second(p.FlushTube(ctx, long, "", 0)), client.ErrInvalid)
	wantErr(t, second(p.FlushTube(ctx, long, client.StateReady, -1)), client.ErrInvalid)
	wantErr(t, second(p.MoveJobs(ctx, long, "-", client.StateReady, 0)), client.ErrInvalid)
	wantErr(t, second(p.MoveJobs(ctx, long, long, client.StateReady, 0)), client.ErrNotFound)
}

// beanstalkd says that it does not know these commands, however long their lines are,
// and the connection stays.
func TestManageBeanstalkd(t *testing.T) {
	ctx := t.Context()
	c := dial(t, startBeanstalkd(t), nil)
	before := get(c.Stats(ctx)).TotalConnections
	for _, tube := range []string{"mail", strings.Repeat("x", 200)} {
		wantErr(t, second(c.ListJobs(ctx, tube, client.StateReady, 5, "400000000.ffffff")), client.ErrUnknownCommand)
		wantErr(t, second(c.FlushTube(ctx, tube, client.StateDelayed, 0)), client.ErrUnknownCommand)
		wantErr(t, second(c.MoveJobs(ctx, tube, "to", client.StateReady, 0)), client.ErrUnknownCommand)
	}
	if st := get(c.Stats(ctx)); st.TotalConnections != before {
		t.Errorf("%d connections, there were %d", st.TotalConnections, before)
	}
}
