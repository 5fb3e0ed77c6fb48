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
	secondsKept = 3600      // an hour
	minutesKept = 24 * 60   // a day
	tubeStep    = 10        // s, between two samples of a tube
	tubeSamples = 61        // of a tube: the first and the last are ten minutes apart
	tubesKept   = 1000      // that have samples
	lookStep    = 60        // s, between two looks for tubes that should have samples
	noTime      = int64(-1) // of a sample that was not taken
)

// The series of the whole server. The first are how much there is, the others how much
// there was since the sample before.
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

// seriesNames are as openapi.yaml has them.
var seriesNames = [numSeries]string{
	"ready", "reserved", "delayed", "buried", "memory_bytes", "connections", "waiting",
	"put", "reserves", "deletes", "timeouts", "refused", "commands",
}

// A sample is a value of each series.
type sample [numSeries]uint64

// A ring has the last samples, by their times. A sample that was not taken is missing.
type ring struct {
	step  int64 // s
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

// add adds to the sample of a time: what there is replaces, what there was adds up.
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

// last returns the last n samples up to a time by series; nil is where there is none.
func (r *ring) last(unix int64, n int) [numSeries][]*uint64 {
	var all [numSeries][]*uint64
	var values [numSeries][]uint64 // one allocation each, not one a value
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

// A history remembers what the server has counted. Record fills it.
type history struct {
	mu      sync.Mutex
	seconds ring
	minutes ring
	tubes   map[string]*tubeHistory
	now     int64 // s since 1970, of the last sample
	looked  int64 // s since 1970, when all tubes were looked at

	// Of Record only.
	totals  sample // since the start, of the sample before
	started bool
}

func newHistory() *history {
	return &history{seconds: newRing(1, secondsKept), minutes: newRing(60, minutesKept), tubes: make(map[string]*tubeHistory), looked: math.MinInt64 / 2}
}

// Record takes a sample of the whole server each second, and of up to a thousand tubes every ten
// seconds, until the context ends. It looks at the others once a minute.
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

// sampleServer takes a sample of the whole server.
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
		return // there are no turns any more
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

// getHistory tells what the whole server has counted, by the second or by the minute.
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
