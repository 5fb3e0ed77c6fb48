package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// What the clients of stalls work beside.
const (
	stallJobs  = 1_000_000
	stallTubes = 20_000
	stormSize  = 5_000 // connections at once, if there are as many jobs

	manyTube  = "many"
	movedTube = "moved"

	// adminSocket is where a server has its admin pages, in {dir}, if they are to be scraped.
	adminSocket = "admin.socket"
)

// stalls looks at how long clients wait while somebody else does what takes long, with an
// experiment for each such thing. Both servers have to be beanpole: most of the commands are its
// own. Metrics are scraped if the servers are given --admin unix:{dir}/admin.socket.
//
// What takes long also takes processors, from the clients that are measured and from any other
// process. So each disturbance is tried twice: at the server of the clients, and at another one of
// the same kind, on the same machine. What clients of the first wait longer is the server's doing.
func stalls(o *Options) (all []Experiment) {
	for _, d := range []disturbance{
		{name: "list", begin: beginList},
		{name: "export", begin: beginExport},
		{name: "move", begin: beginMove},
		{name: "clear", begin: beginClear},
		{name: "kick", begin: beginKick},
		{name: "due", begin: beginDue},
		{name: "disconnect", begin: beginDisconnect},
		{name: "connect storm", begin: beginStorm},
		{name: "scrape", begin: beginScrape},
		{name: "reload", begin: beginReload},
	} {
		all = append(all, stall(o, &d))
	}
	return all
}

// stall is the experiment with one disturbance.
func stall(o *Options, d *disturbance) Experiment {
	return Experiment{
		Name: d.name,
		Title: fmt.Sprintf("%d connections with a command each millisecond beside it, with %s jobs in %s tubes",
			interactiveClients, load.Count(o.jobs(stallJobs)), load.Count(o.stallTubes())),
		goals: []goal{{p99 + d.clients() + toElsewhere, Target{Of: valueOfBoth, Limit: 2}}},
		trial: running(func(ctx context.Context, t *trial) error {
			other := &trial{Options: t.Options, server: t.server, isA: t.isA}
			return other.start(ctx, func(ctx context.Context) error { return t.stall(ctx, other, d) })
		}),
	}
}

const (
	elsewhere   = " of another server"
	toElsewhere = ", to that of another server"
)

// stall measures clients alone, and beside the disturbance of another server and of their own.
func (t *trial) stall(ctx context.Context, other *trial, d *disturbance) error {
	if err := cmp.Or(prepareStalls(ctx, t), prepareStalls(ctx, other)); err != nil {
		return err
	}
	clients, err := StartSteady(ctx, t.Addr)
	if err != nil {
		return err
	}
	defer clients.Close()
	measure := func(ctx context.Context) (load.Result, error) {
		if err := clients.Begin(); err != nil {
			return load.Result{}, err
		}
		if err := sleep(ctx, t.Duration); err != nil {
			return load.Result{}, err
		}
		return clients.End()
	}
	alone, err := measure(ctx)
	if err != nil {
		return err
	}
	control, err := other.disturb(ctx, d, measure)
	if err != nil {
		return err
	}
	r, err := t.disturb(ctx, d, measure)
	if err != nil {
		return err
	}
	t.setClients(ofClientsAlone, alone)
	t.setLatency(d.clients()+elsewhere, control.Latency)
	t.setClients(d.clients(), r)
	t.set(p99+d.clients()+toElsewhere, load.Times, float64(r.Latency.P99)/float64(max(control.Latency.P99, alone.Latency.P99)))
	return nil
}

// stallTubes is the number of tubes beside which clients are measured.
func (o *Options) stallTubes() int { return cmp.Or(o.Tubes, stallTubes) }

// prepareStalls puts the jobs, and one in each of the tubes.
func prepareStalls(ctx context.Context, t *trial) error {
	d, err := t.dial(ctx)
	if err != nil {
		return err
	}
	err = d.Pipeline(2*t.stallTubes(), func(out []byte, i int) []byte {
		if i%2 == 0 {
			return wire.AppendUse(out, tubeName(i/2))
		}
		return wire.AppendPut(out, 0, 0, jobTTR, nil)
	}, nil, wire.Using, wire.Inserted)
	if err != nil {
		return err
	}
	if _, err := d.Do(wire.AppendUse(nil, manyTube), wire.Using); err != nil {
		return err
	}
	begin := time.Now()
	err = d.Repeat(int(t.jobs(stallJobs)), wire.AppendPut(nil, 0, 0, jobTTR, make([]byte, 64)), wire.Inserted)
	t.filling = time.Since(begin)
	return err
}

// pages lists the jobs of the tube page by page, and calls each for the ids of a page.
func pages(ctx context.Context, d *load.Dialog, each func(ids []uint64) error) error {
	cursor := ""
	for ctx.Err() == nil {
		r, err := d.Do(wire.AppendListJobs(nil, manyTube, wire.StateReady, 1000, cursor), wire.OK)
		if err != nil {
			return err
		}
		var ids []uint64
		err = wire.ParseListed(r.Body, func(j *wire.ListedJob) {
			ids, cursor = append(ids, j.ID), string(j.Cursor)
		})
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := each(ids); err != nil {
			return err
		}
	}
	return nil
}

// beginList lists all jobs, again and again.
func beginList(ctx context.Context, t *trial) (func(context.Context) error, error) {
	d, err := t.dial(ctx)
	return func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := pages(ctx, d, func([]uint64) error { return nil }); err != nil {
				return err
			}
		}
		return nil
	}, err
}

// beginExport lists all jobs and asks for their bodies.
func beginExport(ctx context.Context, t *trial) (func(context.Context) error, error) {
	d, err := t.dial(ctx)
	return func(ctx context.Context) error {
		return pages(ctx, d, func(ids []uint64) error {
			return d.Pipeline(len(ids), func(out []byte, i int) []byte { return wire.AppendPeek(out, ids[i]) }, nil, wire.Found)
		})
	}, err
}

// beginMove moves all jobs to another tube and back.
func beginMove(ctx context.Context, t *trial) (func(context.Context) error, error) {
	d, err := t.dial(ctx)
	return func(context.Context) error {
		for _, way := range [][2]string{{manyTube, movedTube}, {movedTube, manyTube}} {
			if _, err := d.Do(wire.AppendMoveJobs(nil, way[0], way[1], wire.StateReady, 0), wire.Moved); err != nil {
				return err
			}
		}
		return nil
	}, err
}

// beginClear deletes all jobs.
func beginClear(ctx context.Context, t *trial) (func(context.Context) error, error) {
	d, err := t.dial(ctx)
	return func(context.Context) error {
		_, err := d.Do(wire.AppendFlushTube(nil, manyTube, wire.StateReady, 0), wire.Flushed)
		return err
	}, err
}

// beginKick kicks as many jobs as there are, which are delayed.
func beginKick(ctx context.Context, t *trial) (func(context.Context) error, error) {
	group, err := t.group(ctx, 1, "kicked")
	if err != nil {
		return nil, err
	}
	jobs := int(t.jobs(stallJobs))
	return func(context.Context) error {
		_, err := group[0].Do(wire.AppendKick(nil, uint32(jobs)), wire.Kicked)
		return err
	}, group[0].Repeat(jobs, wire.AppendPut(nil, 0, jobTTR, jobTTR, nil), wire.Inserted)
}

// beginDue has jobs come due within a second while the clients are measured.
func beginDue(ctx context.Context, t *trial) (func(context.Context) error, error) {
	n := int(t.jobs(stallJobs))
	end := time.Now().Add(planSlack + 2*t.filling)
	if err := t.putDelayed(ctx, n, end); err != nil {
		return nil, err
	}
	early := time.Until(end) - 2*time.Second
	if early < 0 {
		return nil, fmt.Errorf("%d jobs could not be put before they came due", n)
	}
	if err := sleep(ctx, early); err != nil {
		return nil, err
	}
	return func(context.Context) error { return nil }, nil
}

// beginDisconnect ends a connection that holds very many jobs.
func beginDisconnect(ctx context.Context, t *trial) (func(context.Context) error, error) {
	group, err := t.group(ctx, 1, manyTube)
	if err != nil {
		return nil, err
	}
	d := group[0]
	return func(context.Context) error { return d.Close() }, d.Repeat(int(t.jobs(stallJobs)), wire.AppendReserve(nil), wire.Reserved)
}

// beginStorm opens very many connections at once, again and again.
func beginStorm(_ context.Context, t *trial) (func(context.Context) error, error) {
	size := int(min(stormSize, t.jobs(stallJobs)))
	return func(ctx context.Context) error {
		for ctx.Err() == nil {
			var storm []net.Conn
			for len(storm) < size && ctx.Err() == nil {
				nc, err := net.Dial("tcp", t.Addr)
				if err != nil {
					return err
				}
				storm = append(storm, nc)
			}
			for _, nc := range storm {
				nc.Close()
			}
		}
		return nil
	}, nil
}

// beginScrape asks for the metrics, as often as Prometheus would with many replicas.
func beginScrape(_ context.Context, t *trial) (func(context.Context) error, error) {
	path := filepath.Join(t.Dir, adminSocket)
	if _, err := os.Stat(path); err != nil {
		return func(context.Context) error { return nil }, nil // it has no such pages
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}}
	return func(ctx context.Context) error {
		defer client.CloseIdleConnections()
		for sleep(ctx, 200*time.Millisecond) == nil {
			r, err := client.Get("http://admin/metrics")
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, r.Body)
			if err = errors.Join(err, r.Body.Close()); err != nil {
				return err
			}
			if r.StatusCode != http.StatusOK {
				return fmt.Errorf("the metrics: %s", r.Status)
			}
		}
		return nil
	}, nil
}

// beginReload makes the server read its configuration again.
func beginReload(_ context.Context, t *trial) (func(context.Context) error, error) {
	return func(ctx context.Context) error {
		for sleep(ctx, 200*time.Millisecond) == nil {
			if err := syscall.Kill(t.PID, syscall.SIGHUP); err != nil {
				return err
			}
		}
		return nil
	}, nil
}
