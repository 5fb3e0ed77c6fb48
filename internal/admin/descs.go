package admin

import "github.com/prometheus/client_golang/prometheus"

// What the metrics are. Names end as Prometheus recommends: _total counts since the
// start, _bytes are bytes, _seconds are seconds. doc/metrics.md has them in a table,
// which a test compares with this.
var (
	info     = desc("info", "1; the version is a label.", "version")
	draining = desc("draining", "1 if no new jobs are taken.")
	ready    = desc("ready", "1 if clients can use the queue, as /readyz says.")

	jobs       = desc("jobs", "Jobs now.", "state")
	urgent     = desc("jobs_urgent", "Ready jobs with a priority below 1024, now.")
	bodies     = desc("jobs_body_bytes", "Bytes of the bodies of all jobs, now.")
	memory     = desc("jobs_memory_bytes", "Memory set aside for jobs, now.")
	memoryUsed = desc("jobs_memory_used_bytes", "Memory that jobs take now, as --max-memory counts it.")
	maxMemory  = desc("jobs_memory_limit_bytes", "How much memory jobs may take, --max-memory; 0 if there is no limit.")
	maxJobSize = desc("job_body_limit_bytes", "How many bytes the body of a job may have.")
	jobsPut    = desc("jobs_put_total", "Jobs put since the start.")
	timeouts   = desc("jobs_timed_out_total", "Reservations whose time to run was over, since the start.")
	inQueue    = desc("job_queue_seconds", "How long jobs were ready before they were reserved.")
	inWork     = desc("job_work_seconds", "How long jobs were reserved before their delete, release or bury.")

	connections    = desc("connections", "Connections now, by what they have done: all, producers have put, workers have reserved, waiting wait for a job.", "kind")
	connectionsAll = desc("connections_total", "Connections since the start.")
	maxConnections = desc("connections_limit", "How many connections there may be.")
	full           = desc("connections_full", "1 if there are as many connections as there may be, and new clients wait.")
	evicted        = desc("connections_closed_for_memory_total", "Connections closed since the start, because the buffers of all took too much.")
	buffers        = desc("buffers_bytes", "Bytes held now for all connections: input that is not executed yet, and replies that are not read yet.")
	maxBuffers     = desc("buffers_limit_bytes", "How many bytes these may take, --max-buffers; 0 if there is no limit.")
	rejected       = desc("connections_rejected_total", "Connections closed since the start, by reason.", "reason")
	commands       = desc("commands_total", "Commands since the start, by verb.", "verb")
	refused        = desc("commands_refused_total", "Commands refused since the start, by the reply.", "reply")
	throttled      = desc("commands_throttled_total", "How often a connection had to wait since the start, because its client gave more commands a second than it may.")
	limited        = desc("limit_refusals_total", "What the limits of the queue have refused since the start: jobs (memory, tube), new tubes (tubes), tubes to watch (watched).", "limit")
	policies       = desc("policy_events_total", "What policies of tubes have done since the start: jobs tried too often and jobs too old, by the setting; jobs that wait before the next try (retry-delay); what there was no room for (skipped); puts of jobs that were there already (unique), and of jobs without what makes them equal (no-key).", "event")
	stalePass      = desc("policy_pass_seconds", "How long the last look at all jobs took for those that are too old for a policy: so long one of them is there at most. 0 if no policy has ttl, keep-buried or one attempt, and in the first minute.")
	keys           = desc("unique_keys", "Jobs that keep equal ones out of their tubes now, as policies with unique say.")
	indexing       = desc("unique_indexing", "1 while the server looks for what makes jobs equal in those that were there when a policy became one with unique, or another one: until then equal ones may be put beside them.")

	turns        = desc("turn_seconds", "How long turns took, in which commands are executed and written to the journal.")
	turnCommands = desc("turn_commands", "How many commands a turn had.")

	journalHealthy  = desc("journal_healthy", "1 if all is well with the journal, as journal-health in stats says.")
	journalBytes    = desc("journal_bytes", "Bytes of records in all segments.")
	journalLive     = desc("journal_live_bytes", "Bytes that all jobs would take if they were rewritten.")
	journalSegments = desc("journal_segments", "Segments with records.")
	journalRecords  = desc("journal_records_total", "Records written since the start, by what for.", "kind")
	journalSyncing  = desc("journal_sync_under_way_seconds", "How long a sync of the journal has been under way; 0 if none is.")
	journalSyncs    = desc("journal_sync_seconds", "How long the syncs of the journal's files took.")

	clusterLeads      = desc("cluster_leads", "1 if this member leads the cluster.")
	clusterQuorum     = desc("cluster_quorum", "1 if this member knows a leader that hears a majority.")
	clusterTerm       = desc("cluster_term", "The term of the leader, which grows with each election.")
	clusterLag        = desc("cluster_lag_entries", "Entries of the log that are committed, as far as this member knows, and that it has not applied.")
	clusterEvicted    = desc("cluster_connections_evicted_total", "Connections to the port for members closed since the start, because too many had shown no certificate.")
	clusterMembers    = desc("cluster_members", "Members of the cluster, by what they do.", "role")
	clusterMustRejoin = desc("cluster_member_must_rejoin", "1 if another member's disk has lost what this one knows that it had: beanpole cluster rejoin.", "member")
	clusterReachable  = desc("cluster_member_reachable", "1 if this member hears another one.", "member")

	certificateEnd = desc("tls_certificate_end_timestamp_seconds", "When a certificate of a listener ends, or one between it and its authority; in seconds since 1970.", "file")

	tubes     = desc("tubes", "Tubes now.")
	tubesLeft = desc("tubes_without_metrics", "Tubes that have no metrics of their own, because there are too many.")

	tubeJobs       = desc("tube_jobs", "Jobs of a tube now.", "tube", "state")
	tubeBodies     = desc("tube_body_bytes", "Bytes of the bodies of a tube's jobs, now.", "tube")
	tubeOldest     = desc("tube_oldest_ready_seconds", "How long the next job of the tube has been ready; 0 if none is.", "tube")
	tubeInQueue    = desc("tube_job_queue_seconds", "How long jobs of a tube were ready before they were reserved, since the tube came to be.", "tube")
	tubeInWork     = desc("tube_job_work_seconds", "How long jobs of a tube were reserved before their delete, release or bury, since the tube came to be.", "tube")
	tubePut        = desc("tube_jobs_put_total", "Jobs put into a tube since it came to be.", "tube")
	tubeDeletes    = desc("tube_jobs_deleted_total", "Jobs of a tube deleted since it came to be.", "tube")
	tubeTimeouts   = desc("tube_jobs_timed_out_total", "Reservations of jobs of a tube whose time to run was over, since it came to be.", "tube")
	tubeReleases   = desc("tube_jobs_released_total", "How often jobs of a tube were released since it came to be.", "tube")
	tubeBuries     = desc("tube_jobs_buried_total", "How often jobs of a tube were buried since it came to be.", "tube")
	tubeDuplicates = desc("tube_duplicates_total", "Puts into a tube of jobs that were there already, as its policy says, since it came to be.", "tube")
	tubeSessions   = desc("tube_connections", "Connections that use, watch, or wait on a tube, now.", "tube", "kind")
	tubeServable   = desc("tube_servable", "Ready jobs of a tube that workers could reserve at once: none while it is paused, and no more than its policy permits.", "tube")
	tubePaused     = desc("tube_pause_left_seconds", "Seconds until the pause of a tube ends; 0 if it is not paused.", "tube")
)

// descs are all of them.
var descs []*prometheus.Desc

func desc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("beanpole_"+name, help, labels, nil)
	descs = append(descs, d)
	return d
}
