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
	memory    int64
	health    health.Server
	journal   server.JournalStats
	server    server.Counts
	why       string // clients cannot use the queue; empty: they can
	names     engine.Names
	tubes     []tubes.Tube             // that have metrics of their own
	held      map[string]time.Duration // longest reservations by tube
}

// look takes a snapshot. It is nil if the broker is deposed.
func (w *watcher) look() (s *snapshot) {
	b, opt := w.broker, w.opt
	b.View(func(e *engine.Engine, now int64) {
		s = new(snapshot)
		s.stats, s.memory = e.Stats(), e.Memory()
		s.policies, s.stalePass = e.PolicyCounts(), e.StalePass()
		s.keys, s.keysWhole = e.KeysHeld()
		s.times, s.refused, s.turns = *e.Times(), e.Refusals(), *b.Turns()
		if opt.Journal != nil {
			s.journal = opt.Journal()
		}
		if opt.Server != nil {
			s.server = opt.Server()
		}
		s.why = w.notReady(e, s.journal)
		s.health = api.HealthOf(e, now, s.server, s.journal.Health)
		s.names = e.TubeNames()
	})
	return s
}

// A collector makes metrics of a snapshot when Prometheus asks.
type collector struct {
	*watcher
	shownTo *access.Identity // the tubes of others are left out
}

// Describe implements prometheus.Collector: what the metrics are is said by Collect.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	m := metrics(ch)
	m.gauges("info", "1; the version is a label.", "version", map[string]float64{c.opt.Version: 1})
	if c.opt.Journal != nil {
		m.gauge("journal_sync_under_way_seconds", "How long a sync of the journal has been under way; 0 if none is.", c.opt.SyncLasts().Seconds())
	}
	if c.opt.Cluster != nil {
		if s, ok := c.opt.Cluster(); ok {
			m.cluster(&s)
		}
	}
	s, ok := within(c.watcher, c.look)
	known := ok && s != nil
	m.gauge("ready", "1 if clients can use the queue, as /readyz says.", bit(known && s.why == "" && c.opt.SyncLasts() < tooLong))
	if !known {
		return
	}
	s.tubes = c.survey(seen(s.names, c.shownTo), c.opt.Tubes)
	if len(s.tubes) > 0 && s.stats.Reserved > 0 {
		s.held = c.longestHeld()
	}
	m.queue(s)
	m.gauge("draining", "1 if no new jobs are taken.", bit(s.health.Draining))
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
		m.gauges("tls_certificate_end_timestamp_seconds", "When a certificate of a listener ends, or one between it and its authority; in seconds since 1970.", "file", ends)
	}
	m.tubes(s)
}

// metrics is where metrics go. Each is here with its name, which ends as Prometheus recommends, what it means, and its labels: doc/metrics.md
// has them in a table, which a test compares with what is collected.
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
	m.gauges("jobs", "Jobs now.", "state", map[string]float64{"ready": float64(st.Ready), "reserved": float64(st.Reserved), "delayed": float64(st.Delayed), "buried": float64(st.Buried)})
	m.gauge("jobs_urgent", "Ready jobs with a priority below 1024, now.", float64(st.Urgent))
	m.gauge("jobs_body_bytes", "Bytes of the bodies of all jobs, now.", float64(st.Bytes))
	m.gauge("jobs_memory_bytes", "Memory set aside for jobs, now.", float64(s.memory))
	m.gauge("jobs_memory_used_bytes", "Memory that jobs take now, as --max-memory counts it.", float64(s.health.MemoryUsed))
	m.gauge("jobs_memory_limit_bytes", "How much memory jobs may take, --max-memory; 0 if there is no limit.", float64(s.health.MemoryLimit))
	m.counter("jobs_put_total", "Jobs put since the start.", st.TotalJobs)
	m.counter("jobs_timed_out_total", "Reservations whose time to run was over, since the start.", st.Timeouts)
	m.histogram("job_queue_seconds", "How long jobs were ready before they were reserved.", &s.times.Queue, jobTimes)
	m.histogram("job_work_seconds", "How long jobs were reserved before their delete, release or bury.", &s.times.Work, jobTimes)
	m.gauge("tubes", "Tubes now.", float64(st.Tubes))
	m.gauge("tubes_without_metrics", "Tubes that have no metrics of their own, because there are too many.", float64(s.names.Len()-len(s.tubes)))
	m.gauges("connections", "Connections now, by what they have done: all, producers have put, workers have reserved, waiting wait for a job.", "kind", map[string]float64{"all": float64(st.Sessions), "producers": float64(st.Producers), "workers": float64(st.Workers), "waiting": float64(st.Waiting)})
	m.counter("connections_total", "Connections since the start.", st.TotalSessions)
	m.counters("limit_refusals_total", "What the limits of the queue have refused since the start: jobs (memory, tube), new tubes (tubes), tubes to watch (watched).", "limit", map[string]uint64{"memory": s.refused.Memory, "tube": s.refused.TubeFull, "tubes": s.refused.Tubes, "watched": s.refused.Watches})
	events := make(map[string]uint64)
	for v, n := range s.policies {
		events[engine.PolicyEvent(v).String()] = n
	}
	m.counters("policy_events_total", "What policies of tubes have done since the start: jobs tried too often and jobs too old, by the setting; jobs that wait before the next try (retry-delay); what there was no room for (skipped); puts of jobs that were there already (unique), and of jobs without what makes them equal (no-key).", "event", events)
	m.gauge("policy_pass_seconds", "How long the last look at all jobs took for those that are too old for a policy: so long one of them is there at most. 0 if no policy has ttl, keep-buried or one attempt, and in the first minute.", float64(s.stalePass)/1e9)
	m.gauge("unique_keys", "Jobs that keep equal ones out of their tubes now, as policies with unique say.", float64(s.keys))
	m.gauge("unique_indexing", "1 while the server looks for what makes jobs equal in those that were there when a policy became one with unique, or another one: until then equal ones may be put beside them.", bit(!s.keysWhole))
	m.histogram("turn_seconds", "How long turns took, in which commands are executed and written to the journal.", &s.turns.Length, workTimes)
	m.histogram("turn_commands", "How many commands a turn had.", &s.turns.Commands, batches)
}

func (m metrics) server(s *server.Counts) {
	m.gauge("connections_limit", "How many connections there may be.", float64(s.MaxConnections))
	m.gauge("connections_full", "1 if there are as many connections as there may be, and new clients wait.", bit(s.Full))
	m.counter("connections_closed_for_memory_total", "Connections closed since the start, because the buffers of all took too much.", s.ClosedForMemory)
	m.gauge("buffers_bytes", "Bytes held now for all connections: input that is not executed yet, and replies that are not read yet.", float64(s.Buffers))
	m.gauge("buffers_limit_bytes", "How many bytes these may take, --max-buffers; 0 if there is no limit.", float64(s.MaxBuffers))
	m.gauge("job_body_limit_bytes", "How many bytes the body of a job may have.", float64(s.MaxJobSize))
	m.counters("connections_rejected_total", "Connections closed since the start, by reason.", "reason", map[string]uint64{"too many of one address": s.CrowdedConnections, "not allowed": s.RefusedConnections})
	m.counters("commands_refused_total", "Commands refused since the start, by the reply.", "reply", s.RefusedCommands)
	m.counters("commands_total", "Commands since the start, by verb.", "verb", s.Commands)
}

func (m metrics) journal(s *server.JournalStats) {
	m.gauge("journal_healthy", "1 if all is well with the journal, as journal-health in stats says.", bit(s.Health == ""))
	m.gauge("journal_bytes", "Bytes of records in all segments.", float64(s.Bytes))
	m.gauge("journal_live_bytes", "Bytes that all jobs would take if they were rewritten.", float64(s.LiveBytes))
	m.gauge("journal_segments", "Segments with records.", float64(s.Segments))
	m.counters("journal_records_total", "Records written since the start, by what for.", "kind", map[string]uint64{"change": s.RecordsWritten - s.RecordsMigrated, "cleaning": s.RecordsMigrated})
	m.histogram("journal_sync_seconds", "How long the syncs of the journal's files took.", &s.Syncs, workTimes)
}

func (m metrics) cluster(s *ClusterStats) {
	m.gauge("cluster_leads", "1 if this member leads the cluster.", bit(s.Leads))
	m.gauge("cluster_quorum", "1 if this member knows a leader that hears a majority.", bit(s.Quorum))
	m.gauge("cluster_term", "The term of the leader, which grows with each election.", float64(s.Term))
	m.counter("cluster_connections_evicted_total", "Connections to the port for members closed since the start, because too many had shown no certificate.", s.Evicted)
	roles := map[string]float64{string(admin.Leader): 0, string(admin.Voter): 0, string(admin.Learner): 0}
	reachable, mustRejoin := make(map[string]float64), make(map[string]float64)
	lag := 0.0 // a member that was removed has none
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
	m.gauge("cluster_lag_entries", "Entries of the log that are committed, as far as this member knows, and that it has not applied.", lag)
	m.gauges("cluster_members", "Members of the cluster, by what they do.", "role", roles)
	m.gauges("cluster_member_reachable", "1 if this member hears another one.", "member", reachable)
	m.gauges("cluster_member_must_rejoin", "1 if another member's disk has lost what this one knows that it had: beanpole cluster rejoin.", "member", mustRejoin)
}

// tubes gives the metrics of each tube. They come in the order in which Prometheus's library
// sorts them, metric by metric and by the values of the labels: of very many tubes the sorting
// would take a third of the time of a scrape.
func (m metrics) tubes(s *snapshot) {
	all := s.tubes
	slices.SortFunc(all, func(a, b tubes.Tube) int { return strings.Compare(a.Name, b.Name) })
	each := func(kind prometheus.ValueType, d *prometheus.Desc, v func(t *tubes.Tube) float64, label ...string) {
		for i := range all {
			m <- prometheus.MustNewConstMetric(d, kind, v(&all[i]), append([]string{all[i].Name}, label...)...)
		}
	}
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	jobs := desc("tube_jobs", "Jobs of a tube now.", "tube", "state")
	each(gauge, jobs, func(t *tubes.Tube) float64 { return float64(t.Buried) }, "buried")
	each(gauge, jobs, func(t *tubes.Tube) float64 { return float64(t.Delayed) }, "delayed")
	each(gauge, jobs, func(t *tubes.Tube) float64 { return float64(t.Ready) }, "ready")
	each(gauge, jobs, func(t *tubes.Tube) float64 { return float64(t.Reserved) }, "reserved")
	each(gauge, desc("tube_body_bytes", "Bytes of the bodies of a tube's jobs, now.", "tube"), func(t *tubes.Tube) float64 { return float64(t.Bytes) })
	each(gauge, desc("tube_oldest_ready_seconds", "How long the next job of the tube has been ready; 0 if none is.", "tube"), func(t *tubes.Tube) float64 { return float64(t.OldestReady) / 1e9 })
	each(gauge, desc("tube_longest_reserved_seconds", "Time for which a job of a tube has been reserved, the longest of them; 0 if none is.", "tube"), func(t *tubes.Tube) float64 { return s.held[t.Name].Seconds() })
	sessions := desc("tube_connections", "Connections that use, watch, or wait on a tube, now.", "tube", "kind")
	each(gauge, sessions, func(t *tubes.Tube) float64 { return float64(t.Using) }, "using")
	each(gauge, sessions, func(t *tubes.Tube) float64 { return float64(t.Waiting) }, "waiting")
	each(gauge, sessions, func(t *tubes.Tube) float64 { return float64(t.Watching) }, "watching")
	each(gauge, desc("tube_pause_left_seconds", "Seconds until the pause of a tube ends; 0 if it is not paused.", "tube"), func(t *tubes.Tube) float64 { return float64(t.PauseLeft) })
	each(gauge, desc("tube_servable", "Ready jobs of a tube that workers could reserve at once: none while it is paused, and no more than its policy permits.", "tube"), func(t *tubes.Tube) float64 { return float64(t.Servable) })
	each(counter, desc("tube_jobs_put_total", "Jobs put into a tube since it came to be.", "tube"), func(t *tubes.Tube) float64 { return float64(t.TotalJobs) })
	each(counter, desc("tube_jobs_deleted_total", "Jobs of a tube deleted since it came to be.", "tube"), func(t *tubes.Tube) float64 { return float64(t.Deletes) })
	each(counter, desc("tube_jobs_timed_out_total", "Reservations of jobs of a tube whose time to run was over, since it came to be.", "tube"), func(t *tubes.Tube) float64 { return float64(t.Timeouts) })
	each(counter, desc("tube_jobs_released_total", "How often jobs of a tube were released since it came to be.", "tube"), func(t *tubes.Tube) float64 { return float64(t.Releases) })
	each(counter, desc("tube_jobs_buried_total", "How often jobs of a tube were buried since it came to be.", "tube"), func(t *tubes.Tube) float64 { return float64(t.Buries) })
	each(counter, desc("tube_jobs_exhausted_total", "Total jobs of a tube that reached a limit of its policy since the tube was created.", "tube"), func(t *tubes.Tube) float64 { return float64(t.Exhausted) })
	each(counter, desc("tube_duplicates_total", "Puts into a tube of jobs that were there already, as its policy says, since it came to be.", "tube"), func(t *tubes.Tube) float64 { return float64(t.Duplicates) })
	inQueue := desc("tube_job_queue_seconds", "How long jobs of a tube were ready before they were reserved, since the tube came to be.", "tube")
	inWork := desc("tube_job_work_seconds", "How long jobs of a tube were reserved before their delete, release or bury, since the tube came to be.", "tube")
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
