package admin

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api"
	"github.com/beanpole-mq/beanpole/internal/api/tubes"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/engine/histogram"
	"github.com/beanpole-mq/beanpole/internal/health"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// A snapshot is the state that the metrics describe. It is taken in one turn, except for
// the tubes, which take several more; see survey.
type snapshot struct {
	stats     engine.Stats
	times     engine.Times
	refused   engine.Refusals
	policies  engine.PolicyCounts
	schedules engine.ScheduleCounts
	keys      int // number of jobs with a key of a unique job
	keysWhole bool
	turns     broker.Turns
	memory    int64
	health    health.Server
	journal   server.JournalStats
	server    server.Counts
	why       string                   // reason why clients cannot use the queue; empty if they can
	tubes     []tubes.Tube             // tubes with metrics
	held      map[string]time.Duration // longest reservation by tube
}

// look takes a snapshot. It returns nil if the broker is deposed.
func (w *watcher) look() (s *snapshot) {
	b, opt := w.broker, w.opt
	b.View(func(e *engine.Engine, now int64) {
		s = new(snapshot)
		s.stats, s.memory = e.Stats(), e.Memory()
		s.policies = e.PolicyCounts()
		s.keys, s.keysWhole = e.KeysHeld()
		s.schedules = e.ScheduleCounts()
		s.times, s.refused, s.turns = *e.Times(), e.Refusals(), *b.Turns()
		if opt.Journal != nil {
			s.journal = opt.Journal()
		}
		if opt.Server != nil {
			s.server = opt.Server()
		}
		s.why = w.notReady(e, s.journal)
		s.health = api.HealthOf(e, now, s.server, s.journal.Health)
	})
	return s
}

// A collector takes a snapshot at each scrape and turns it into metrics.
type collector struct {
	*watcher
	shownTo *access.Identity // identity that must see only its tubes
}

// Describe implements prometheus.Collector. It sends nothing, so the registry checks the
// output of Collect.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	m := metrics(ch)
	m.gauges("info", "Always 1; the label is the version.", "version", map[string]float64{c.opt.Version: 1})
	if c.opt.Journal != nil {
		m.gauge("journal_sync_under_way_seconds", "Time that the current sync of the journal has taken; 0 if there is none.", c.opt.SyncLasts().Seconds())
	}
	if c.opt.Cluster != nil {
		if s, ok := c.opt.Cluster(); ok {
			m.cluster(&s)
		}
	}
	s, ok := within(c.watcher, c.look)
	known := ok && s != nil
	m.gauge("ready", "1 if clients can use the queue, as /readyz reports.", bit(known && s.why == "" && c.opt.SyncLasts() < tooLong))
	if !known {
		return
	}
	s.tubes = c.survey(c.shownTo, c.opt.Tubes)
	if len(s.tubes) > 0 && s.stats.Reserved > 0 {
		s.held = c.longestHeld()
	}
	m.queue(s)
	m.gauge("draining", "1 if the server rejects new jobs.", bit(s.health.Draining))
	if c.opt.Server != nil {
		m.server(&s.server)
	}
	if c.opt.Journal != nil {
		m.journal(&s.journal)
	}
	if c.opt.Certificates != nil {
		ends := make(map[string]float64)
		for _, e := range c.opt.Certificates() {
			ends[e.File] = float64(e.End.Unix())
		}
		m.gauges("tls_certificate_end_timestamp_seconds", "Expiry of a certificate of a listener or of its chain, in seconds since 1970.", "file", ends)
	}
	m.tubes(s)
}

// metrics is a channel that receives metrics. A test compares their names, help texts and
// labels with the table in doc/metrics.md.
type metrics chan<- prometheus.Metric

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("beanpole_"+name, help, labels, nil)
}

func (m metrics) gauge(name, help string, v float64) {
	m <- prometheus.MustNewConstMetric(desc(name, help), prometheus.GaugeValue, v)
}

func (m metrics) counter(name, help string, v uint64) {
	m <- prometheus.MustNewConstMetric(desc(name, help), prometheus.CounterValue, float64(v))
}

func (m metrics) gauges(name, help, label string, by map[string]float64) {
	d := desc(name, help, label)
	for of, v := range by {
		m <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, of)
	}
}

func (m metrics) counters(name, help, label string, by map[string]uint64) {
	d := desc(name, help, label)
	for of, v := range by {
		m <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), of)
	}
}

// A scale selects the buckets of a histogram for Prometheus, and converts its values to
// the unit of the metric. Values above the last limit are in a bucket without a limit.
type scale struct {
	unit     float64 // values per unit of the metric
	from, to int     // buckets
}

var (
	// jobTimes ranges from 8 microseconds to a day.
	jobTimes = scale{1e9, 13, 47}

	// workTimes, for turns and syncs, ranges from a microsecond to nine seconds.
	workTimes = scale{1e9, 10, 33}

	// batches ranges from one command to 16384.
	batches = scale{1, 0, 14}
)

func (m metrics) histogram(name, help string, h *histogram.Histogram, sc scale) {
	buckets := make(map[float64]uint64)
	n := uint64(0)
	for k, c := range h.Counts {
		n += c
		if k >= sc.from && k <= sc.to {
			buckets[histogram.Limit(k)/sc.unit] = n
		}
	}
	m <- prometheus.MustNewConstHistogram(desc(name, help), n, h.Sum/sc.unit, buckets)
}

func (m metrics) queue(s *snapshot) {
	st := &s.stats
	m.gauges("jobs", "Number of jobs.", "state", map[string]float64{"ready": float64(st.Ready), "reserved": float64(st.Reserved), "delayed": float64(st.Delayed), "buried": float64(st.Buried)})
	m.gauge("jobs_urgent", "Number of ready jobs with a priority below 1024.", float64(st.Urgent))
	m.gauge("jobs_body_bytes", "Size of the bodies of all jobs.", float64(st.Bytes))
	m.gauge("jobs_memory_bytes", "Memory allocated for jobs.", float64(s.memory))
	m.gauge("jobs_memory_used_bytes", "Memory that jobs and tubes use, as counted by max-memory.", float64(s.health.MemoryUsed))
	m.gauge("jobs_memory_limit_bytes", "Maximum memory for jobs and tubes (max-memory); 0 means no limit.", float64(s.health.MemoryLimit))
	m.counter("jobs_put_total", "Total jobs put.", st.TotalJobs)
	m.counter("jobs_timed_out_total", "Total reservations whose TTR expired.", st.Timeouts)
	m.histogram("job_queue_seconds", "Time that jobs were ready before they were reserved.", &s.times.Queue, jobTimes)
	m.histogram("job_work_seconds", "Time that jobs were reserved before their delete, release or bury.", &s.times.Work, jobTimes)
	m.gauge("tubes", "Number of tubes.", float64(st.Tubes))
	m.gauge("tubes_without_metrics", "Number of tubes without their own metrics, beyond metrics-tubes.", max(0, float64(st.Tubes)-float64(len(s.tubes))))
	m.gauges("connections", "Number of connections: all, those that have put (producers) or reserved (workers), and those that wait for a job.", "kind", map[string]float64{"all": float64(st.Sessions), "producers": float64(st.Producers), "workers": float64(st.Workers), "waiting": float64(st.Waiting)})
	m.counter("connections_total", "Total connections.", st.TotalSessions)
	m.counters("limit_refusals_total", "Total refusals by a limit: jobs (memory, tube), new tubes (tubes), watches (watched).", "limit", map[string]uint64{"memory": s.refused[engine.MemoryLimit], "tube": s.refused[engine.TubeJobsLimit] + s.refused[engine.TubeBytesLimit], "tubes": s.refused[engine.TubesLimit], "watched": s.refused[engine.WatchesLimit]})
	events := make(map[string]uint64)
	for v, n := range s.policies {
		events[engine.PolicyEvent(v).String()] = n
	}
	m.counters("policy_events_total", "Total actions of policies: exhausted and expired jobs by setting, delayed retries (retry-delay), actions without disk space (skipped), exhausted jobs that the dead tube refused (dead-tube), duplicate puts (unique), and puts without a key (no-key).", "event", events)
	r := s.schedules
	m.counters("schedule_runs_total", "Total runs of schedules: with a job (put), missed, skipped because the previous job was not finished, and attempts whose job was rejected (refused).", "result", map[string]uint64{"put": r.Runs, "missed": r.Missed, "skipped": r.Skipped, "refused": r.Refused})
	m.gauge("unique_keys", "Number of jobs that block duplicates.", float64(s.keys))
	m.gauge("unique_indexing", "1 while the server indexes existing jobs after a change of unique; until then, duplicates of them are accepted.", bit(!s.keysWhole))
	m.histogram("turn_seconds", "Duration of turns, in which the server executes commands and writes them to the journal.", &s.turns.Length, workTimes)
	m.histogram("turn_commands", "Number of commands per turn.", &s.turns.Commands, batches)
}

func (m metrics) server(s *server.Counts) {
	m.gauge("connections_limit", "Maximum number of connections.", float64(s.MaxConnections))
	m.gauge("connections_full", "1 if the maximum number of connections is reached and new clients wait.", bit(s.Full))
	m.counter("connections_closed_for_memory_total", "Total connections closed because of max-buffers.", s.ClosedForMemory)
	m.gauge("buffers_bytes", "Size of the buffers of all connections: pending commands and unread replies.", float64(s.Buffers))
	m.gauge("buffers_limit_bytes", "Maximum size of all buffers (max-buffers); 0 means no limit.", float64(s.MaxBuffers))
	m.gauge("job_body_limit_bytes", "Maximum size of a body.", float64(s.MaxJobSize))
	m.counters("connections_rejected_total", "Total connections closed at their start.", "reason", map[string]uint64{"too many of one address": s.CrowdedConnections, "not allowed": s.RefusedConnections})
	if s.RefusedClaims != nil {
		m.counter("cluster_clients_resumed_total", "Total clients resumed after a change of leader.", s.Resumed)
		m.counters("cluster_claims_refused_total", "Total jobs that resumed clients have lost.", "reason", s.RefusedClaims)
	}
	m.counters("commands_refused_total", "Total commands refused.", "reply", s.RefusedCommands)
	m.counters("commands_total", "Total commands.", "verb", s.Commands)
}

func (m metrics) journal(s *server.JournalStats) {
	m.gauge("journal_healthy", "1 if journal-health in stats is ok.", bit(s.Health == ""))
	m.gauge("journal_bytes", "Size of the records in all segments.", float64(s.Bytes))
	m.gauge("journal_live_bytes", "Size that the records of all jobs would have if the journal were rewritten now.", float64(s.LiveBytes))
	m.gauge("journal_segments", "Number of segments with records.", float64(s.Segments))
	m.counters("journal_records_total", "Total journal records written, by kind: changes, and copies by compaction.", "kind", map[string]uint64{"change": s.RecordsWritten - s.RecordsMigrated, "cleaning": s.RecordsMigrated})
	m.histogram("journal_sync_seconds", "Duration of journal syncs.", &s.Syncs, workTimes)
}

func (m metrics) cluster(s *ClusterStats) {
	m.gauge("cluster_leads", "1 if this member leads the cluster.", bit(s.Leads))
	m.gauge("cluster_quorum", "1 if this member has a leader that reaches a majority.", bit(s.Quorum))
	m.gauge("cluster_term", "Term of the leader, which grows with each election.", float64(s.Term))
	m.counter("cluster_connections_evicted_total", "Total connections to the port for members closed because too many had no certificate.", s.Evicted)
	roles := map[string]float64{string(admin.Leader): 0, string(admin.Voter): 0, string(admin.Learner): 0}
	reachable, mustRejoin := make(map[string]float64), make(map[string]float64)
	lag := 0.0 // stays 0 if the member was removed
	for i := range s.Members {
		k := &s.Members[i]
		roles[string(k.Role)]++
		if k.ID == s.Self {
			lag = float64(k.Lag)
			continue
		}
		id := strconv.FormatUint(k.ID, 10)
		reachable[id], mustRejoin[id] = bit(k.Reachable), bit(k.MustRejoin)
	}
	m.gauge("cluster_lag_entries", "Number of committed entries that this member has not applied.", lag)
	m.gauges("cluster_members", "Number of members.", "role", roles)
	m.gauges("cluster_member_reachable", "1 if this member receives messages from the member in the label.", "member", reachable)
	m.gauges("cluster_member_must_rejoin", "1 if the other member has lost data on its disk: beanpole cluster rejoin.", "member", mustRejoin)
}

// tubes sends the metrics of each tube in the order in which Prometheus's library would
// sort them: by metric, then by the values of the labels. With many tubes, that sorting
// would take a third of a scrape's time.
func (m metrics) tubes(s *snapshot) {
	all := s.tubes
	slices.SortFunc(all, func(a, b tubes.Tube) int { return strings.Compare(a.Name, b.Name) })
	each := func(kind prometheus.ValueType, d *prometheus.Desc, v func(t *tubes.Tube) float64, label ...string) {
		for i := range all {
			m <- prometheus.MustNewConstMetric(d, kind, v(&all[i]), append([]string{all[i].Name}, label...)...)
		}
	}
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	jobs := desc("tube_jobs", "Number of jobs in the tube.", "tube", "state")
	each(gauge, jobs, func(t *tubes.Tube) float64 { return float64(t.Buried) }, "buried")
	each(gauge, jobs, func(t *tubes.Tube) float64 { return float64(t.Delayed) }, "delayed")
	each(gauge, jobs, func(t *tubes.Tube) float64 { return float64(t.Ready) }, "ready")
	each(gauge, jobs, func(t *tubes.Tube) float64 { return float64(t.Reserved) }, "reserved")
	each(gauge, desc("tube_body_bytes", "Size of the bodies in the tube.", "tube"), func(t *tubes.Tube) float64 { return float64(t.Bytes) })
	each(gauge, desc("tube_oldest_ready_seconds", "Time that the next job has been ready; 0 if there is none.", "tube"), func(t *tubes.Tube) float64 { return float64(t.OldestReady) / 1e9 })
	each(gauge, desc("tube_longest_reserved_seconds", "Longest time that a job has been reserved; 0 if there is none.", "tube"), func(t *tubes.Tube) float64 { return s.held[t.Name].Seconds() })
	sessions := desc("tube_connections", "Number of connections that use, watch, or wait on the tube.", "tube", "kind")
	each(gauge, sessions, func(t *tubes.Tube) float64 { return float64(t.Using) }, "using")
	each(gauge, sessions, func(t *tubes.Tube) float64 { return float64(t.Waiting) }, "waiting")
	each(gauge, sessions, func(t *tubes.Tube) float64 { return float64(t.Watching) }, "watching")
	each(gauge, desc("tube_pause_left_seconds", "Time until the pause ends; 0 if the tube is not paused.", "tube"), func(t *tubes.Tube) float64 { return float64(t.PauseLeft) })
	each(gauge, desc("tube_servable", "Number of ready jobs that workers can reserve now, considering pause and policy.", "tube"), func(t *tubes.Tube) float64 { return float64(t.Reservable) })
	each(counter, desc("tube_jobs_put_total", "Total jobs put into the tube since it was created.", "tube"), func(t *tubes.Tube) float64 { return float64(t.TotalJobs) })
	each(counter, desc("tube_jobs_deleted_total", "Total jobs deleted.", "tube"), func(t *tubes.Tube) float64 { return float64(t.Deletes) })
	each(counter, desc("tube_jobs_timed_out_total", "Total reservations whose TTR expired.", "tube"), func(t *tubes.Tube) float64 { return float64(t.Timeouts) })
	each(counter, desc("tube_jobs_released_total", "Total releases.", "tube"), func(t *tubes.Tube) float64 { return float64(t.Releases) })
	each(counter, desc("tube_jobs_buried_total", "Total buries.", "tube"), func(t *tubes.Tube) float64 { return float64(t.Buries) })
	each(counter, desc("tube_jobs_exhausted_total", "Total jobs that reached a limit of the policy.", "tube"), func(t *tubes.Tube) float64 { return float64(t.Exhausted) })
	each(counter, desc("tube_duplicates_total", "Total duplicate puts.", "tube"), func(t *tubes.Tube) float64 { return float64(t.Duplicates) })
	inQueue := desc("tube_job_queue_seconds", "Time that jobs in the tube were ready before they were reserved.", "tube")
	inWork := desc("tube_job_work_seconds", "Time that jobs in the tube were reserved before their delete, release or bury.", "tube")
	for i := range all {
		t := &all[i]
		m <- prometheus.MustNewConstSummary(inQueue, t.Queued.N, t.Queued.Sum/1e9, nil, t.Name)
		m <- prometheus.MustNewConstSummary(inWork, t.Worked.N, t.Worked.Sum/1e9, nil, t.Name)
	}
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
