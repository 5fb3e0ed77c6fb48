package admin

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/engine/histogram"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// A snapshot is what a turn tells, and some more turns about tubes: see survey.
type snapshot struct {
	stats     engine.Stats
	times     engine.Times
	refused   engine.Refusals
	policies  engine.PolicyCounts
	stalePass int64 // ns
	keys      int   // of unique jobs
	keysWhole bool
	turns     broker.Turns
	draining  bool
	memory    int64
	used      int64 // of the memory that jobs may take
	limit     int64
	journal   JournalStats
	server    server.Counts
	ready     bool
	names     engine.Names
	tubes     []tubeSnapshot // that have metrics of their own
}

// look takes a snapshot. It is nil if the broker is deposed.
func (w *watcher) look() (s *snapshot) {
	b, opt := w.broker, w.opt
	b.View(func(e *engine.Engine, _ int64) {
		s = new(snapshot)
		s.stats, s.draining, s.memory = e.Stats(), e.IsDraining(), e.Memory()
		s.used, s.limit = e.LimitedMemory()
		s.policies, s.stalePass = e.PolicyCounts(), e.StalePass()
		s.keys, s.keysWhole = e.KeysHeld()
		s.times, s.refused, s.turns = *e.Times(), e.Refusals(), *b.Turns()
		if opt.Journal != nil {
			s.journal = opt.Journal()
		}
		if opt.Server != nil {
			s.server = opt.Server()
		}
		s.ready = w.notReady(e, s.journal) == ""
		s.names = e.TubeNames()
	})
	return s
}

// A collector makes metrics of a snapshot when Prometheus asks.
type collector struct {
	*watcher
	shownTo *access.Identity // the tubes of others are left out
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	m := metrics(ch)
	m.gauge(info, 1, c.opt.Version)
	if c.opt.SyncLasts != nil {
		m.gauge(journalSyncing, c.opt.SyncLasts().Seconds())
	}
	if c.opt.Cluster != nil {
		if s, ok := c.opt.Cluster(); ok {
			m.cluster(&s)
		}
	}
	s, ok := within(c.watcher, c.look)
	if !ok || s == nil { // of the queue nothing is known
		m.gauge(ready, 0)
		return
	}
	s.tubes = c.survey(seen(s.names, c.shownTo), c.opt.Tubes)
	m.queue(s)
	m.gauge(draining, flag(s.draining))
	m.gauge(ready, flag(s.ready && c.syncLasts() < tooLong))
	if c.opt.Server != nil {
		m.server(&s.server)
	}
	if c.opt.Journal != nil {
		m.journal(&s.journal)
	}
	if c.opt.Certificates != nil {
		for _, e := range c.opt.Certificates() {
			m.gauge(certificateEnd, float64(e.End.Unix()), e.File)
		}
	}
	m.tubes(s.tubes)
}

// metrics is where metrics go.
type metrics chan<- prometheus.Metric

func (m metrics) gauge(d *prometheus.Desc, v float64, labels ...string) {
	m <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (m metrics) counter(d *prometheus.Desc, v uint64, labels ...string) {
	m <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

// A scale says which buckets of a histogram Prometheus gets, and how many of its values
// are one of the unit. Larger values are in the last bucket, which has no limit.
type scale struct {
	unit     float64
	from, to int // buckets
}

var (
	// jobTimes are from 8 microseconds to a day.
	jobTimes = scale{1e9, 13, 47}

	// workTimes, of turns and syncs, are from a microsecond to nine seconds.
	workTimes = scale{1e9, 10, 33}

	// batches are from one command to 16384.
	batches = scale{1, 0, 14}
)

func (m metrics) histogram(d *prometheus.Desc, h *histogram.Histogram, sc scale) {
	buckets := make(map[float64]uint64)
	n := uint64(0)
	for k, c := range h.Counts {
		n += c
		if k >= sc.from && k <= sc.to {
			buckets[histogram.Limit(k)/sc.unit] = n
		}
	}
	m <- prometheus.MustNewConstHistogram(d, n, h.Sum/sc.unit, buckets)
}

func (m metrics) summary(d *prometheus.Desc, t engine.Total, labels ...string) {
	m <- prometheus.MustNewConstSummary(d, t.N, t.Sum/1e9, nil, labels...)
}

func (m metrics) queue(s *snapshot) {
	st := &s.stats
	m.gauge(jobs, float64(st.Ready), "ready")
	m.gauge(jobs, float64(st.Reserved), "reserved")
	m.gauge(jobs, float64(st.Delayed), "delayed")
	m.gauge(jobs, float64(st.Buried), "buried")
	m.gauge(urgent, float64(st.Urgent))
	m.gauge(bodies, float64(st.Bytes))
	m.gauge(memory, float64(s.memory))
	m.gauge(memoryUsed, float64(s.used))
	m.gauge(maxMemory, float64(s.limit))
	m.counter(jobsPut, st.TotalJobs)
	m.counter(timeouts, st.Timeouts)
	m.histogram(inQueue, &s.times.Queue, jobTimes)
	m.histogram(inWork, &s.times.Work, jobTimes)
	m.gauge(tubes, float64(st.Tubes))
	m.gauge(tubesLeft, float64(s.names.Len()-len(s.tubes)))
	m.gauge(connections, float64(st.Sessions), "all")
	m.gauge(connections, float64(st.Producers), "producers")
	m.gauge(connections, float64(st.Workers), "workers")
	m.gauge(connections, float64(st.Waiting), "waiting")
	m.counter(connectionsAll, st.TotalSessions)
	m.counter(limited, s.refused.Memory, "memory")
	m.counter(limited, s.refused.TubeFull, "tube")
	m.counter(limited, s.refused.Tubes, "tubes")
	m.counter(limited, s.refused.Watches, "watched")
	for v, n := range s.policies {
		m.counter(policies, n, engine.PolicyEvent(v).String())
	}
	m.gauge(stalePass, float64(s.stalePass)/1e9)
	m.gauge(keys, float64(s.keys))
	m.gauge(indexing, flag(!s.keysWhole))
	m.histogram(turns, &s.turns.Length, workTimes)
	m.histogram(turnCommands, &s.turns.Commands, batches)
}

func (m metrics) server(s *server.Counts) {
	m.gauge(maxConnections, float64(s.MaxConnections))
	m.gauge(full, flag(s.Full))
	m.counter(evicted, s.ClosedForMemory)
	m.gauge(buffers, float64(s.Buffers))
	m.gauge(maxBuffers, float64(s.MaxBuffers))
	m.gauge(maxJobSize, float64(s.MaxJobSize))
	m.counter(rejected, s.CrowdedConnections, "too many of one address")
	m.counter(rejected, s.RefusedConnections, "not allowed")
	for reply, n := range s.RefusedCommands {
		m.counter(refused, n, reply)
	}
	m.counter(throttled, s.Throttled)
	for verb, n := range s.Commands {
		m.counter(commands, n, verb)
	}
}

func (m metrics) journal(s *JournalStats) {
	m.gauge(journalHealthy, flag(s.Health == ""))
	m.gauge(journalBytes, float64(s.Bytes))
	m.gauge(journalLive, float64(s.LiveBytes))
	m.gauge(journalSegments, float64(s.Segments))
	m.counter(journalRecords, s.RecordsWritten-s.RecordsMigrated, "change")
	m.counter(journalRecords, s.RecordsMigrated, "cleaning")
	m.histogram(journalSyncs, &s.Syncs, workTimes)
}

func (m metrics) cluster(s *ClusterStats) {
	m.gauge(clusterLeads, flag(s.Leads))
	m.gauge(clusterQuorum, flag(s.Quorum))
	m.gauge(clusterTerm, float64(s.Term))
	m.gauge(clusterLag, float64(s.Lag))
	m.counter(clusterEvicted, s.Evicted)
	for role, n := range s.Roles {
		m.gauge(clusterMembers, float64(n), role)
	}
	for id, reachable := range s.Reachable {
		m.gauge(clusterReachable, flag(reachable), id)
		m.gauge(clusterMustRejoin, flag(s.MustRejoin[id]), id)
	}
}

// tubes gives the metrics of each tube. They come in the order in which Prometheus's library
// sorts them, metric by metric and by the values of the labels: of very many tubes the sorting
// would take a third of the time of a scrape.
func (m metrics) tubes(all []tubeSnapshot) {
	slices.SortFunc(all, func(a, b tubeSnapshot) int { return strings.Compare(a.name, b.name) })
	gauges := func(d *prometheus.Desc, v func(t *tubeSnapshot) float64, label ...string) {
		for i := range all {
			m.gauge(d, v(&all[i]), append([]string{all[i].name}, label...)...)
		}
	}
	gauges(tubeJobs, func(t *tubeSnapshot) float64 { return float64(t.Buried) }, "buried")
	gauges(tubeJobs, func(t *tubeSnapshot) float64 { return float64(t.Delayed) }, "delayed")
	gauges(tubeJobs, func(t *tubeSnapshot) float64 { return float64(t.Ready) }, "ready")
	gauges(tubeJobs, func(t *tubeSnapshot) float64 { return float64(t.Reserved) }, "reserved")
	gauges(tubeBodies, func(t *tubeSnapshot) float64 { return float64(t.Bytes) })
	gauges(tubeOldest, func(t *tubeSnapshot) float64 { return float64(t.OldestReady) / 1e9 })
	gauges(tubeSessions, func(t *tubeSnapshot) float64 { return float64(t.Using) }, "using")
	gauges(tubeSessions, func(t *tubeSnapshot) float64 { return float64(t.Waiting) }, "waiting")
	gauges(tubeSessions, func(t *tubeSnapshot) float64 { return float64(t.Watching) }, "watching")
	gauges(tubePaused, func(t *tubeSnapshot) float64 { return float64(t.PauseLeft) })
	gauges(tubeServable, func(t *tubeSnapshot) float64 { return float64(t.Servable) })
	for i := range all {
		t := &all[i]
		m.summary(tubeInQueue, t.Queued, t.name)
		m.summary(tubeInWork, t.Worked, t.name)
		m.counter(tubePut, t.TotalJobs, t.name)
		m.counter(tubeDeletes, t.Deletes, t.name)
		m.counter(tubeTimeouts, t.Timeouts, t.name)
		m.counter(tubeReleases, t.Releases, t.name)
		m.counter(tubeBuries, t.Buries, t.name)
		m.counter(tubeDuplicates, t.Duplicates, t.name)
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
