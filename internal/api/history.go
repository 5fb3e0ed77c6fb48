package api

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

const (
	secondsKept = 3600      // one hour
	minutesKept = 24 * 60   // one day
	tubeStep    = 10        // seconds between two samples of a tube
	tubeSamples = 61        // samples of a tube; the first and the last are ten minutes apart
	tubesKept   = 1000      // tubes with samples
	lookStep    = 60        // seconds between two surveys that select the tubes with samples
	noTime      = int64(-1) // time of a sample that was not taken
)

// The series of the server. The first are levels, the others increases since the previous
// sample.
const (
	seriesReady = iota
	seriesReserved
	seriesDelayed
	seriesBuried
	seriesMemory
	seriesConnections
	seriesWaiting
	seriesPut
	seriesReserves
	seriesDeletes
	seriesTimeouts
	seriesRefused
	seriesCommands
	numSeries

	firstRate = seriesPut
)

// seriesNames are the names in the API.
var seriesNames = [numSeries]string{
	"ready", "reserved", "delayed", "buried", "memory_bytes", "connections", "waiting",
	"put", "reserves", "deletes", "timeouts", "refused", "commands",
}

// A sample has a value of each series.
type sample [numSeries]uint64

// A ring has the last samples, indexed by time. Samples that were not taken are missing.
type ring struct {
	step  int64 // seconds between two samples
	at    []int64
	value []sample
}

func newRing(step int64, n int) ring {
	r := ring{step: step, at: make([]int64, n), value: make([]sample, n)}
	for i := range r.at {
		r.at[i] = noTime
	}
	return r
}

// add adds a sample to the sample of its time. Levels replace the old value, increases
// add up.
func (r *ring) add(unix int64, s *sample) {
	at := unix / r.step
	i := at % int64(len(r.at))
	if r.at[i] != at {
		r.at[i], r.value[i] = at, sample{}
	}
	v := &r.value[i]
	copy(v[:firstRate], s[:firstRate])
	for k := firstRate; k < numSeries; k++ {
		v[k] += s[k]
	}
}

// last returns the last n samples up to a time, by series. Missing samples are nil.
func (r *ring) last(unix int64, n int) [numSeries][]*uint64 {
	var all [numSeries][]*uint64
	var values [numSeries][]uint64 // one allocation per series
	for k := range all {
		all[k], values[k] = make([]*uint64, n), make([]uint64, n)
	}
	for i := range n {
		at := unix/r.step - int64(n-1-i)
		place := ((at % int64(len(r.at))) + int64(len(r.at))) % int64(len(r.at))
		if r.at[place] != at {
			continue
		}
		for k, v := range r.value[place] {
			values[k][i] = v
			all[k][i] = &values[k][i]
		}
	}
	return all
}

// A history has the recent samples. Record fills it.
type history struct {
	mu      sync.Mutex
	seconds ring
	minutes ring
	tubes   map[string]*tubeHistory
	now     int64 // Unix time of the last sample
	looked  int64 // Unix time of the last survey of all tubes

	// Used by Record only.
	totals  sample // counters since the start, at the previous sample
	started bool
}

func newHistory() *history {
	return &history{seconds: newRing(1, secondsKept), minutes: newRing(60, minutesKept), tubes: make(map[string]*tubeHistory), looked: math.MinInt64 / 2}
}

// Record takes a sample of the server every second, and of up to a thousand tubes every
// ten seconds, until ctx ends. Once a minute, a survey of all tubes selects these.
func (a *API) Record(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 0; ; n++ {
		now := time.Now().Unix()
		a.sampleServer(now)
		if n%tubeStep == 0 {
			a.sampleTubes(ctx, now)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sampleServer takes a sample of the server.
func (a *API) sampleServer(unix int64) {
	var s sample
	taken := false
	a.broker.Call(func(e *engine.Engine, _ int64) {
		st, counts := e.Stats(), a.opt.Server.Counts()
		s = sample{
			seriesReady: st.Ready, seriesReserved: st.Reserved, seriesDelayed: st.Delayed, seriesBuried: st.Buried,
			seriesMemory: uint64(e.Memory()), seriesConnections: st.Sessions, seriesWaiting: st.Waiting,
			seriesPut: st.TotalJobs, seriesReserves: e.Times().Queue.Count(), seriesDeletes: counts.Commands["delete"],
			seriesTimeouts: st.Timeouts,
		}
		for _, n := range counts.RefusedCommands {
			s[seriesRefused] += n
		}
		for _, n := range counts.Commands {
			s[seriesCommands] += n
		}
		taken = true
	})
	if !taken {
		return // the broker is closed
	}
	h := a.history
	h.mu.Lock()
	defer h.mu.Unlock()
	totals := s
	for k := firstRate; k < numSeries; k++ {
		s[k] -= min(h.totals[k], s[k])
		if !h.started {
			s[k] = 0
		}
	}
	h.totals, h.started, h.now = totals, true, unix
	h.seconds.add(unix, &s)
	h.minutes.add(unix, &s)
}

// getHistory returns the series of the server, by the second or by the minute.
func (r *request) getHistory(in *admin.GetHistory) (page admin.History, err error) {
	h := r.api.history
	from, n := &h.seconds, 600
	if in.Step == 60 {
		from, n = &h.minutes, 60
	}
	if in.Points != nil {
		if n = *in.Points; n < 1 || n > len(from.at) {
			return page, badRequest("points: want a number from 1 to %d", len(from.at))
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	all := from.last(h.now, n)
	page = admin.History{Step: from.step, End: h.now - h.now%from.step, Series: make(map[string][]*uint64)}
	for k, name := range seriesNames {
		page.Series[name] = all[k]
	}
	return page, nil
}
