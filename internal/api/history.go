package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/history"
)

const (
	secondsKept = 600  // maximum number of samples of the server
	tubeStep    = 10   // seconds between two samples of a tube
	tubeSamples = 61   // maximum number of samples of a tube; the first and the last are ten minutes apart
	tubesKept   = 1000 // maximum number of tubes with samples
	lookStep    = 60   // seconds between two surveys that select the tubes with samples
	maxGap      = 60   // seconds between two samples beyond which a chart cannot show both
)

// A recorder stores samples of the last ten minutes. Record takes the samples, and adds a
// point to the store every minute.
type recorder struct {
	store *history.Store

	mu     sync.Mutex
	server samples // one each second
	tubes  map[string]*samples

	// Used only by Record.
	times   engine.Times // of the last sample of the server
	looked  int64        // Unix time of the last survey of all tubes; 0 before the first
	pulling sync.Mutex
}

// samples are the last samples of the server or of a tube, oldest first. A sample
// contains the increases since the previous one.
type samples struct {
	kept   []history.Values
	at     int64          // Unix time of the last sample; 0 before the first
	last   history.Values // counters and levels at that time
	sum    history.Values // sum of all samples except the oldest one
	minute history.Values // sum of the samples since the end of the last minute
	times  engine.Times   // durations at the end of the last minute
}

// add adds a sample with the given counters and levels. It keeps at most the given number
// of samples. It discards samples from before a gap, such as the sleep of a machine. A
// counter that has decreased belongs to a new tube with the same name, and started at 0.
func (s *samples) add(unix int64, now *history.Values, most int) *history.Values {
	v := *now
	for i := range history.NumSeries {
		if i.IsIncrease() && v[i] >= s.last[i] {
			v[i] -= s.last[i]
		}
	}
	if gap := unix - s.at; gap > maxGap || gap < -maxGap {
		s.kept, s.sum = nil, history.Values{}
	}
	s.minute.Add(&v)
	s.last, s.at = *now, unix
	if len(s.kept) == most {
		for i := range history.NumSeries {
			if i.IsIncrease() {
				s.sum[i] -= s.kept[1][i]
			}
		}
		s.kept = slices.Delete(s.kept, 0, 1)
	}
	if len(s.kept) > 0 {
		s.sum.Add(&v)
	}
	s.kept = append(s.kept, v)
	return &s.kept[len(s.kept)-1]
}

// endMinute returns the values since the last call. now contains the durations; it is nil
// if they are unknown.
func (s *samples) endMinute(now *engine.Times) history.Values {
	v := s.minute
	if now != nil {
		setDurations(&v, now, &s.times)
		s.times = *now
	}
	for i := range history.NumSeries {
		if i.IsIncrease() {
			s.minute[i] = 0
		}
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
	var now history.Values
	var times *engine.Times
	a.broker.Call(func(e *engine.Engine, _ int64) {
		st, counts := e.Stats(), a.opt.Server.Counts()
		times = new(*e.Times())
		now = history.Values{
			history.Ready: st.Ready, history.Reserved: st.Reserved, history.Delayed: st.Delayed, history.Buried: st.Buried,
			history.Memory: uint64(e.Memory()), history.Connections: st.Sessions, history.Waiting: st.Waiting,
			history.Put: st.TotalJobs, history.Reserves: times.Queue.Count(), history.Done: st.Deletes,
			history.Failed: st.Failed, history.Retried: st.Releases, history.Timeouts: st.Timeouts,
		}
		for _, n := range counts.RefusedCommands {
			now[history.Refused] += n
		}
		for _, n := range counts.Commands {
			now[history.Commands] += n
		}
	})
	if times == nil {
		return // the broker is closed
	}
	h := a.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.server.at == 0 {
		h.server.last, h.server.times, h.times = now, *times, *times
	}
	setDurations(h.server.add(unix, &now, secondsKept), times, &h.times)
	h.times = *times
}

// endMinute adds the points of the minute that has ended at a Unix time, if this server
// is the leader.
func (a *API) endMinute(ctx context.Context, unix int64) {
	h := a.history
	points := a.endTubes(ctx)
	h.mu.Lock()
	points = append(points, history.Point{Values: h.server.endMinute(&h.times)})
	h.mu.Unlock()
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
var pointLimits = map[int]struct{ most, usual int }{1: {secondsKept, secondsKept}, tubeStep: {tubeSamples - 1, tubeSamples - 1}, 60: {1440, 60}, 3600: {744, 168}}

// getHistory returns the series of the server.
func (r *request) getHistory(in *admin.GetHistory) (page admin.History, err error) {
	page, _, err = r.past(&r.api.history.server, "", in.Step, in.Points, history.NumSeries)
	delete(page.Series, history.Names[history.OldestReady]) // not measured for the server as a whole
	return page, err
}

// past returns points of the server or, with a name, of a tube. found is false if there
// are none for the tube.
func (r *request) past(s *samples, tube string, step int, asked *int, series history.Series) (page admin.History, found bool, err error) {
	limit := pointLimits[step]
	n := *cmp.Or(asked, &limit.usual)
	if n < 1 || n > limit.most {
		return page, false, badRequest("points: want a number from 1 to %d with step %d", limit.most, step)
	}
	h := r.api.history
	h.mu.Lock()
	defer h.mu.Unlock()
	end := h.server.at / int64(step) * int64(step)
	all := make([]*history.Values, n)
	switch {
	case step >= 60:
		all, found = h.store.Series(tube, time.Duration(step)*time.Second, time.Unix(end, 0), n)
	case s != nil:
		end, found = s.at, true
		for i := range min(n, len(s.kept)) {
			all[n-1-i] = &s.kept[len(s.kept)-1-i]
		}
	}
	return shownHistory(step, end, all, series), found, nil
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
