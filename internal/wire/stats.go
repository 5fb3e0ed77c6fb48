package wire

import (
	"slices"
	"time"
)

// ServerStats contains the values of stats: beanstalkd's 51 keys, and our own.
type ServerStats struct {
	Compat Compat // determines the quotes and the version

	Urgent, Ready, Reserved, Delayed, Buried uint64 // current numbers of jobs; Urgent jobs are ready and have a priority below 1024

	Commands  [NumOps]uint64 // number of commands; see Command.Counted
	Timeouts  uint64         // expired TTRs
	TotalJobs uint64         // number of puts since the start

	MaxBody          int    // bytes
	Tubes            uint64 // current number
	Connections      uint64 // current number
	Producers        uint64 // current number of connections that have put
	Workers          uint64 // current number of connections that have reserved
	Waiting          uint64 // current number of connections that wait in a reserve
	TotalConnections uint64

	PID          int
	User, System time.Duration
	Uptime       time.Duration

	// The journal, which beanstalkd calls binlog.
	OldestSegment   uint64 // number of the segment; 0 without a journal
	CurrentSegment  uint64 // number of the segment; 0 without a journal
	RecordsMigrated uint64 // number of records rewritten by compaction
	RecordsWritten  uint64 // number of records written, including migrated ones
	SegmentSize     int64  // bytes

	Draining bool
	Instance uint64 // random, new in each process
	Hostname string
	OS       string // beanstalkd shows the version of the kernel, not its name
	Platform string // machine

	Extra []Stat // entries after the 51 keys
}

// A Stat is an entry of stats that beanstalkd lacks.
type Stat struct {
	Key    string
	Value  string // without quotes
	Quoted bool   // set for strings; Compat112 omits the quotes
}

// counterOrder is the order of the command counters in stats, which differs from the
// table.
var counterOrder = [...]Op{
	Put, Peek, PeekReady, PeekDelayed, PeekBuried, Reserve, ReserveTimeout, Delete, Release, Use, Watch, Ignore, Bury,
	Kick, Touch, Stats, StatsJob, StatsTube, ListTubes, ListTubeUsed, ListTubesWatched, PauseTube,
}

// OwnCounters contains the counters that beanstalkd lacks, in the order of the table.
// AppendStats does not write them; the caller can pass them in Extra.
var OwnCounters = func() (own []Op) {
	for op := range NumOps {
		if op.Counter() != "" && !slices.Contains(counterOrder[:], op) {
			own = append(own, op)
		}
	}
	return own
}()

// AppendStats appends the reply to stats.
func AppendStats(dst []byte, s *ServerStats) []byte {
	start := len(dst)
	d := dict(openData(dst))
	d.jobs(s.Urgent, s.Ready, s.Reserved, s.Delayed, s.Buried)
	for _, op := range &counterOrder {
		d.uint(op.Counter(), s.Commands[op])
	}
	d.uint("job-timeouts", s.Timeouts)
	d.uint(keyTotalJobs, s.TotalJobs)
	d.int("max-job-size", int64(s.MaxBody))
	d.uint("current-tubes", s.Tubes)
	d.uint("current-connections", s.Connections)
	d.uint("current-producers", s.Producers)
	d.uint("current-workers", s.Workers)
	d.uint(keyWaiting, s.Waiting)
	d.uint("total-connections", s.TotalConnections)
	d.int("pid", int64(s.PID))
	d.quoted("version", s.Compat.String()) // clients enable features by version
	d.cpu("rusage-utime", s.User)
	d.cpu("rusage-stime", s.System)
	d.int("uptime", int64(s.Uptime/time.Second))
	d.uint("binlog-oldest-index", s.OldestSegment)
	d.uint("binlog-current-index", s.CurrentSegment)
	d.uint("binlog-records-migrated", s.RecordsMigrated)
	d.uint("binlog-records-written", s.RecordsWritten)
	d.int("binlog-max-size", s.SegmentSize)
	d.bool("draining", s.Draining)
	d.hex("id", s.Instance)
	d.text("hostname", s.Hostname, s.Compat)
	d.text("os", s.OS, s.Compat)
	d.text("platform", s.Platform, s.Compat)
	for _, x := range s.Extra {
		if x.Quoted {
			d.text(x.Key, x.Value, s.Compat)
		} else {
			d.bare(x.Key, x.Value)
		}
	}
	return closeData(d, start)
}

// TubeStats contains the values of stats-tube. The keys are exactly those of beanstalkd,
// because clients compare whole dictionaries.
type TubeStats struct {
	Compat Compat // determines the quotes
	Name   string

	Urgent, Ready, Reserved, Delayed, Buried uint64 // current numbers of jobs

	TotalJobs        uint64 // number of puts since the tube was created
	Using            uint64 // current number of connections
	Watching         uint64 // current number of connections
	Waiting          uint64 // current number of connections that wait in a reserve
	Deletes          uint64 // successful deletes since the tube was created
	Pauses           uint64 // successful pauses since the tube was created
	Pause, PauseLeft int64  // in seconds; 0 if not paused
}

// AppendTubeStats appends the reply to stats-tube.
func AppendTubeStats(dst []byte, s *TubeStats) []byte {
	start := len(dst)
	d := dict(openData(dst))
	d.text("name", s.Name, s.Compat)
	d.jobs(s.Urgent, s.Ready, s.Reserved, s.Delayed, s.Buried)
	d.uint(keyTotalJobs, s.TotalJobs)
	d.uint("current-using", s.Using)
	d.uint("current-watching", s.Watching)
	d.uint(keyWaiting, s.Waiting)
	d.uint(Delete.Counter(), s.Deletes)
	d.uint(PauseTube.Counter(), s.Pauses)
	d.int("pause", s.Pause)
	d.int("pause-time-left", s.PauseLeft)
	return closeData(d, start)
}

// Keys that stats and stats-tube share, in addition to those of jobs.
const (
	keyTotalJobs = "total-jobs"
	keyWaiting   = "current-waiting"
)

func (d *dict) jobs(urgent, ready, reserved, delayed, buried uint64) {
	d.uint("current-jobs-urgent", urgent)
	d.uint("current-jobs-ready", ready)
	d.uint("current-jobs-reserved", reserved)
	d.uint("current-jobs-delayed", delayed)
	d.uint("current-jobs-buried", buried)
}
