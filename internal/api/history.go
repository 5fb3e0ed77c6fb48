package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/history"
)

const (
	secondsKept = 600  // number of samples of the server
	tubeStep    = 10   // seconds between two samples of a tube
	tubeSamples = 61   // number of samples of a tube; the first and the last are ten minutes apart
	tubesKept   = 1000 // maximum number of tubes with samples
	lookStep    = 60   // seconds between two surveys that select the tubes with samples
)

// A recorder stores samples of the last ten minutes. Record takes the samples, and adds a
// point to the store every minute.
type recorder struct {
	store *history.Store

	mu      sync.Mutex
	seconds [secondsKept]struct {
		at     int64 // Unix time; any other time means that there is no sample
		values history.Values
	}
	tubes map[string]*tubeHistory
	now   int64 // Unix time of the last sample

	// Used only by Record.
	last, minute totals
	looked       int64 // Unix time of the last survey of all tubes; 0 before the first
	pulling      sync.Mutex
}

// totals contains the counters of the server and its levels at a given time.
type totals struct {
	taken bool
	history.Values
	engine.Times
}

// since returns the values for the time since an earlier sample.
func (t *totals) since(before *totals) (v history.Values) {
	v = t.Values
	for s := range history.NumSeries {
		if s.IsIncrease() && before.taken {
			v[s] -= min(before.Values[s], v[s])
		} else if s.IsIncrease() {
			v[s] = 0
		}
	}
	if before.taken {
		setDurations(&v, &t.Times, &before.Times)
	}
	return v
}

// setDurations sets the quantiles of the durations recorded between two times.
func setDurations(v *history.Values, now, before *engine.Times) {
	wait, run := now.Queue.Since(&before.Queue), now.Work.Since(&before.Work)
	v[history.WaitMedian], v[history.WaitP95] = uint64(wait.Quantile(0.5)), uint64(wait.Quantile(0.95))
	v[history.RunMedian], v[history.RunP95] = uint64(run.Quantile(0.5)), uint64(run.Quantile(0.95))
}

// Record takes a sample of the server every second, and of up to a thousand tubes every
// ten seconds, until ctx ends. Once a minute, a survey of all tubes selects these tubes,
// and the store gets a point for each. In a cluster, only the leader adds points; the
// other members copy missing points from it. Record also runs the store.
func (a *API) Record(ctx context.Context) {
	open, stop := context.WithCancel(context.WithoutCancel(ctx))
	stored := make(chan struct{})
	go func() {
		defer close(stored)
		a.history.store.Run(open)
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var tens, minutes int64
	for ended := false; !ended; {
		now := time.Now().Unix()
		a.sampleServer(now)
		if ten := now / tubeStep; ten != tens {
			tens = ten
			a.sampleTubes(ctx, now)
			if leader, _ := a.leader(); leader != nil && ten%6 == 1 && a.history.pulling.TryLock() { // the leader has added its minute
				go func() {
					defer a.history.pulling.Unlock()
					a.pull(ctx, leader)
				}()
			}
		}
		if minute := now / 60; minute != minutes {
			if minutes > 0 {
				a.endMinute(ctx, minute*60)
			}
			minutes = minute
		}
		select {
		case <-ctx.Done():
			ended = true
		case <-tick.C:
		}
	}
	if minutes > 0 {
		a.endMinute(ctx, (minutes+1)*60) // a part of the minute; another process can add the rest
	}
	stop()
	select {
	case <-stored:
	case <-time.After(time.Second): // the disk hangs
	}
}

// sampleServer takes a sample of the server.
func (a *API) sampleServer(unix int64) {
	var t totals
	a.broker.Call(func(e *engine.Engine, _ int64) {
		st, counts := e.Stats(), a.opt.Server.Counts()
		t = totals{taken: true, Times: *e.Times(), Values: history.Values{
			history.Ready: st.Ready, history.Reserved: st.Reserved, history.Delayed: st.Delayed, history.Buried: st.Buried,
			history.Memory: uint64(e.Memory()), history.Connections: st.Sessions, history.Waiting: st.Waiting,
			history.Put: st.TotalJobs, history.Reserves: e.Times().Queue.Count(), history.Done: st.Deletes,
			history.Failed: st.Failed, history.Retried: st.Releases, history.Timeouts: st.Timeouts,
		}}
		for _, n := range counts.RefusedCommands {
			t.Values[history.Refused] += n
		}
		for _, n := range counts.Commands {
			t.Values[history.Commands] += n
		}
	})
	if !t.taken {
		return // the broker is closed
	}
	h := a.history
	if !h.minute.taken {
		h.minute = t
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	second := &h.seconds[unix%secondsKept]
	v := t.since(&h.last)
	if second.at == unix {
		second.values.Add(&v)
	} else {
		second.at, second.values = unix, v
	}
	h.last, h.now = t, unix
}

// endMinute adds the points of the minute that has ended at a Unix time, if this server
// is the leader.
func (a *API) endMinute(ctx context.Context, unix int64) {
	h := a.history
	points := append(a.endTubes(ctx), history.Point{Values: h.last.since(&h.minute)})
	h.minute = h.last
	if leader, err := a.leader(); leader == nil && err == nil {
		h.store.AddMinute(unix*1000, points)
	}
}

// leader returns the transport to the leader, or nil if this server is the leader or is
// not in a cluster.
func (a *API) leader() (http.RoundTripper, error) {
	if a.opt.Leader == nil {
		return nil, nil
	}
	return a.opt.Leader()
}

// historyPath is the path of the history for other members.
const historyPath = "/history"

// pull copies points and changes that the store lacks from the leader. If the leader
// cannot answer, the next attempt is a minute later.
func (a *API) pull(ctx context.Context, leader http.RoundTripper) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	url := "http://leader" + historyPath + "?"
	for k, newest := range a.history.store.Newest() {
		url += fmt.Sprintf("%d=%d&", k, newest)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return
	}
	answer, err := leader.RoundTrip(r)
	if err == nil {
		defer answer.Body.Close()
		if answer.StatusCode == http.StatusOK { // otherwise, the leader's version has no history
			err = a.history.store.Receive(answer.Body)
		}
	}
	if err != nil {
		a.opt.Logger.Debug("cannot take the history of the leader", "err", err)
	}
}

// sendHistory answers pull.
func (a *API) sendHistory(w http.ResponseWriter, r *http.Request) {
	var newest [history.NumKinds]int64
	for k := range newest {
		fmt.Sscan(r.FormValue(fmt.Sprint(k)), &newest[k]) // 0 requests all points
	}
	a.history.store.Send(w, newest)
}

// pointLimits are the maximum and the default number of points, by step in seconds.
var pointLimits = map[int]struct{ most, usual int }{1: {secondsKept, secondsKept}, 10: {tubeSamples - 1, tubeSamples - 1}, 60: {1440, 60}, 3600: {744, 168}}

// points returns the requested number of points.
func points(asked *int, step int) (int, error) {
	most := pointLimits[step].most
	n := cmp.Or(asked, new(pointLimits[step].usual))
	if *n < 1 || *n > most {
		return 0, badRequest("points: want a number from 1 to %d with step %d", most, step)
	}
	return *n, nil
}

// getHistory returns the series of the server.
func (r *request) getHistory(in *admin.GetHistory) (page admin.History, err error) {
	n, err := points(in.Points, in.Step)
	if err != nil {
		return page, err
	}
	h := r.api.history
	h.mu.Lock()
	defer h.mu.Unlock()
	end := h.now / int64(in.Step) * int64(in.Step)
	var all []*history.Values
	if in.Step > 1 {
		all, _ = h.store.Series("", time.Duration(in.Step)*time.Second, time.Unix(end, 0), n)
	} else {
		all = make([]*history.Values, n)
		for i := range all {
			at := end - int64(n-1-i)
			if s := &h.seconds[(at%secondsKept+secondsKept)%secondsKept]; s.at == at {
				all[i] = &s.values
			}
		}
	}
	page = shownHistory(in.Step, end, all, history.NumSeries)
	delete(page.Series, history.Names[history.OldestReady]) // not measured for the server as a whole
	return page, nil
}

// shownHistory returns some series of points that end at a Unix time.
func shownHistory(step int, end int64, points []*history.Values, series history.Series) admin.History {
	page := admin.History{Step: int64(step), End: end, Series: make(map[string][]*float64)}
	for s := range series {
		values := make([]*float64, len(points))
		for i, p := range points {
			switch {
			case p == nil, s.IsDuration() && p[s] == 0: // unknown
			case s.IsDuration():
				values[i] = new(float64(p[s]) / 1e9)
			default:
				values[i] = new(float64(p[s]))
			}
		}
		page.Series[history.Names[s]] = values
	}
	return page
}
