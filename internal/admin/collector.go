package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// A snapshot is what one turn tells.
type snapshot struct {
	stats    engine.Stats
	draining bool
	memory   int64
	journal  JournalStats
	server   server.Counts
	ready    bool
	tubes    []tubeSnapshot
	left     int // tubes that have no metrics of their own
}

type tubeSnapshot struct {
	name string
	engine.TubeStats
}

// look takes a snapshot in a turn.
func look(b *broker.Broker, opt *Options) (s snapshot) {
	b.Call(func(e *engine.Engine, now int64) {
		s.stats, s.draining, s.memory = e.Stats(), e.IsDraining(), e.Memory()
		s.ready = !s.draining && (opt.NotReady == nil || opt.NotReady() == "")
		if opt.Journal != nil {
			s.journal = opt.Journal()
		}
		if opt.Server != nil {
			s.server = opt.Server()
		}
		names := e.TubeNames()
		n := min(names.Len(), max(opt.Tubes, 0))
		s.left = names.Len() - n
		for i := range n {
			name := names.At(i)
			if st, o := e.TubeStats(now, []byte(name)); o == engine.OK {
				s.tubes = append(s.tubes, tubeSnapshot{name, st})
			}
		}
	})
	return s
}

// notReady says why clients cannot use the queue.
func notReady(b *broker.Broker, opt *Options) (why string) {
	b.Call(func(e *engine.Engine, _ int64) {
		switch {
		case e.IsDraining():
			why = "draining: no new jobs are taken"
		case opt.NotReady != nil:
			why = opt.NotReady()
		}
	})
	return why
}

// What the metrics are. Names end as Prometheus recommends: _total counts since the
// start, _bytes are bytes.
var (
	info           = desc("info", "1; the version is a label.", "version")
	jobs           = desc("jobs", "Jobs now.", "state")
	urgent         = desc("jobs_urgent", "Ready jobs with a priority below 1024, now.")
	bodies         = desc("jobs_body_bytes", "Bytes of the bodies of all jobs, now.")
	memory         = desc("jobs_memory_bytes", "Memory set aside for jobs, now.")
	jobsPut        = desc("jobs_put_total", "Jobs put since the start.")
	timeouts       = desc("jobs_timed_out_total", "Reservations whose time to run was over, since the start.")
	tubes          = desc("tubes", "Tubes now.")
	tubesLeft      = desc("tubes_without_metrics", "Tubes that have no metrics of their own, because there are too many.")
	connections    = desc("connections", "Connections now, by what they have done: all, producers have put, workers have reserved, waiting wait for a job.", "kind")
	connectionsAll = desc("connections_total", "Connections since the start.")
	rejected       = desc("connections_rejected_total", "Connections closed since the start, by reason.", "reason")
	refused        = desc("commands_refused_total", "Commands that no rule allowed, since the start.")
	commands       = desc("commands_total", "Commands since the start, by verb.", "verb")
	draining       = desc("draining", "1 if no new jobs are taken.")
	ready          = desc("ready", "1 if clients can use the queue, as /readyz says.")

	journalHealthy  = desc("journal_healthy", "1 if changes can be written to the journal.")
	journalBytes    = desc("journal_bytes", "Bytes of records in all segments.")
	journalLive     = desc("journal_live_bytes", "Bytes that all jobs would take if they were written anew.")
	journalSegments = desc("journal_segments", "Segments with records.")
	journalRecords  = desc("journal_records_total", "Records written since the start, by what for.", "kind")

	tubeJobs     = desc("tube_jobs", "Jobs of a tube now.", "tube", "state")
	tubeBodies   = desc("tube_body_bytes", "Bytes of the bodies of a tube's jobs, now.", "tube")
	tubePut      = desc("tube_jobs_put_total", "Jobs put into a tube since it came to be.", "tube")
	tubeDeletes  = desc("tube_jobs_deleted_total", "Jobs of a tube deleted since it came to be.", "tube")
	tubeSessions = desc("tube_connections", "Connections that use, watch, or wait on a tube, now.", "tube", "kind")
	tubePaused   = desc("tube_pause_left_seconds", "Seconds until the pause of a tube ends; 0 if it is not paused.", "tube")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("beanpole_"+name, help, labels, nil)
}

// A collector makes metrics of a snapshot when Prometheus asks.
type collector struct {
	broker *broker.Broker
	opt    *Options
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{info, jobs, urgent, bodies, memory, jobsPut, timeouts, tubes, tubesLeft, connections, connectionsAll,
		rejected, refused, commands, draining, ready, journalHealthy, journalBytes, journalLive, journalSegments, journalRecords,
		tubeJobs, tubeBodies, tubePut, tubeDeletes, tubeSessions, tubePaused} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := look(c.broker, c.opt)
	m := metrics(ch)
	st := &s.stats
	m.gauge(info, 1, c.opt.Version)
	m.states(jobs, st.Ready, st.Reserved, st.Delayed, st.Buried)
	m.gauge(urgent, float64(st.Urgent))
	m.gauge(bodies, float64(st.Bytes))
	m.gauge(memory, float64(s.memory))
	m.counter(jobsPut, st.TotalJobs)
	m.counter(timeouts, st.Timeouts)
	m.gauge(tubes, float64(st.Tubes))
	m.gauge(tubesLeft, float64(s.left))
	m.gauge(connections, float64(st.Sessions), "all")
	m.gauge(connections, float64(st.Producers), "producers")
	m.gauge(connections, float64(st.Workers), "workers")
	m.gauge(connections, float64(st.Waiting), "waiting")
	m.counter(connectionsAll, st.TotalSessions)
	m.gauge(draining, flag(s.draining))
	m.gauge(ready, flag(s.ready))
	if c.opt.Server != nil {
		m.server(&s.server)
	}
	if c.opt.Journal != nil {
		m.journal(&s.journal)
	}
	for i := range s.tubes {
		m.tube(&s.tubes[i])
	}
}

// metrics is where metrics go.
type metrics chan<- prometheus.Metric

func (m metrics) gauge(d *prometheus.Desc, v float64, labels ...string) {
	m <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (m metrics) counter(d *prometheus.Desc, v uint64, labels ...string) {
	m <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

// states gives the number of jobs of each state; labels come before that of the state.
func (m metrics) states(d *prometheus.Desc, ready, reserved, delayed, buried uint64, labels ...string) {
	for i, n := range []uint64{ready, reserved, delayed, buried} {
		state := []string{"ready", "reserved", "delayed", "buried"}[i]
		m.gauge(d, float64(n), append(labels[:len(labels):len(labels)], state)...)
	}
}

func (m metrics) server(s *server.Counts) {
	m.counter(rejected, s.RejectedConnections, "too many")
	m.counter(rejected, s.RefusedConnections, "not allowed")
	m.counter(refused, s.RefusedCommands)
	for verb, n := range s.Commands {
		m.counter(commands, n, verb)
	}
}

func (m metrics) journal(s *JournalStats) {
	m.gauge(journalHealthy, flag(s.Healthy))
	m.gauge(journalBytes, float64(s.Bytes))
	m.gauge(journalLive, float64(s.LiveBytes))
	m.gauge(journalSegments, float64(s.Segments))
	m.counter(journalRecords, s.RecordsWritten-s.RecordsMigrated, "change")
	m.counter(journalRecords, s.RecordsMigrated, "cleaning")
}

func (m metrics) tube(t *tubeSnapshot) {
	m.states(tubeJobs, t.Ready, t.Reserved, t.Delayed, t.Buried, t.name)
	m.gauge(tubeBodies, float64(t.Bytes), t.name)
	m.counter(tubePut, t.TotalJobs, t.name)
	m.counter(tubeDeletes, t.Deletes, t.name)
	m.gauge(tubeSessions, float64(t.Using), t.name, "using")
	m.gauge(tubeSessions, float64(t.Watching), t.name, "watching")
	m.gauge(tubeSessions, float64(t.Waiting), t.name, "waiting")
	m.gauge(tubePaused, float64(t.PauseLeft), t.name)
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
