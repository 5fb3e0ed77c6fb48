package client_test

import (
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/test/conformance"
)

func TestListJobs(t *testing.T) {
	ctx := t.Context()
	c := dial(t, start(t), nil)
	ids := get(c.PutMany(ctx, []client.NewJob{
		{Tube: "mail", Priority: new(uint32(5)), Body: []byte("a")},
		{Tube: "mail", Priority: new(uint32(4)), TTR: 7 * time.Second, Body: []byte("bb")},
		{Tube: "mail", Delay: time.Hour},
	}))
	jobs := get(c.ListJobs(ctx, client.Selection{Tube: "mail", State: client.StateReady, Limit: 1}, ""))
	if len(jobs) != 1 || jobs[0].ID != ids[1] || jobs[0].Priority != 4 || jobs[0].TTR != 7*time.Second || jobs[0].Size != 2 || jobs[0].Tube != "mail" || jobs[0].State != client.StateReady {
		t.Errorf("%+v", jobs)
	}
	jobs = get(c.ListJobs(ctx, client.Selection{Tube: "mail", State: client.StateReady, Limit: 5}, jobs[0].Cursor))
	if len(jobs) != 1 || jobs[0].ID != ids[0] {
		t.Errorf("%+v", jobs)
	}
	if jobs = get(c.ListJobs(ctx, client.Selection{Tube: "mail", State: client.StateReady, Limit: 5}, jobs[0].Cursor)); len(jobs) != 0 {
		t.Errorf("%+v", jobs)
	}
	if jobs = get(c.ListJobs(ctx, client.Selection{Tube: "mail", State: client.StateDelayed, Limit: 5}, "")); len(jobs) != 1 || jobs[0].TimeLeft < time.Hour-time.Minute || jobs[0].Delay != time.Hour {
		t.Errorf("%+v", jobs)
	}
	job := get(c.ReserveJob(ctx, ids[0]))
	if jobs = get(c.ListJobs(ctx, client.Selection{Tube: "mail", State: client.StateReserved, Limit: 5}, "")); len(jobs) != 1 || jobs[0].ID != job.ID || jobs[0].Reserves != 1 {
		t.Errorf("%+v", jobs)
	}
	wantErr(t, second(c.ListJobs(ctx, client.Selection{Tube: "nothing", State: client.StateReady, Limit: 5}, "")), client.ErrNotFound)
	wantErr(t, second(c.ListJobs(ctx, client.Selection{Tube: "mail", State: client.StateReady, Limit: 5}, "x")), client.ErrBadFormat)
	wantErr(t, second(c.ListJobs(ctx, client.Selection{Tube: "mail", State: client.StateReady, Limit: 0}, "")), client.ErrInvalid)
	wantErr(t, second(c.ListJobs(ctx, client.Selection{Tube: "mail", State: "any", Limit: 5}, "")), client.ErrInvalid)
	wantErr(t, second(c.ListJobs(ctx, client.Selection{Tube: "-", State: client.StateReady, Limit: 5}, "")), client.ErrInvalid)
}

// All jobs come, in order, however many they are; who has enough stops.
func TestJobs(t *testing.T) {
	ctx := t.Context()
	c := dial(t, start(t), nil)
	want := get(c.PutMany(ctx, make([]client.NewJob, 2*client.MaxListed+7)))
	n := 0
	for job, err := range c.Jobs(ctx, client.Selection{Tube: "default", State: client.StateReady, Limit: client.All}) {
		if must(t, err); job.ID != want[n] {
			t.Fatalf("job %d comes, want %d", job.ID, want[n])
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d jobs", n)
	}
	n = 0
	for _, err := range c.Jobs(ctx, client.Selection{Tube: "default", State: client.StateReady, Limit: client.MaxListed + 3}) {
		must(t, err)
		n++
	}
	if n != client.MaxListed+3 {
		t.Errorf("%d jobs", n)
	}
	for range c.Jobs(ctx, client.Selection{Tube: "default", State: client.StateReady, Limit: client.All}) {
		break
	}
	for job, err := range c.Jobs(ctx, client.Selection{Tube: "nothing", State: client.StateReady, Limit: client.All}) {
		if wantErr(t, err, client.ErrNotFound); job != nil {
			t.Errorf("%+v", job)
		}
	}
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

// beanstalkd says that it does not know these commands, however long their lines are,
// and the connection stays.
func TestManageBeanstalkd(t *testing.T) {
	ctx := t.Context()
	c := dial(t, conformance.Beanstalkd(t), nil)
	before := get(c.Stats(ctx)).TotalConnections
	for _, tube := range []string{"mail", strings.Repeat("x", 200)} {
		wantErr(t, second(c.ListJobs(ctx, client.Selection{Tube: tube, State: client.StateReady, Limit: 5}, "400000000.ffffff")), client.ErrUnknownCommand)
		wantErr(t, second(c.FlushTube(ctx, client.Selection{Tube: tube, State: client.StateDelayed, Limit: client.All})), client.ErrUnknownCommand)
		wantErr(t, second(c.MoveJobs(ctx, client.Selection{Tube: tube, State: client.StateReady, Limit: client.All}, "to")), client.ErrUnknownCommand)
	}
	if st := get(c.Stats(ctx)); st.TotalConnections != before {
		t.Errorf("%d connections, there were %d", st.TotalConnections, before)
	}
}
