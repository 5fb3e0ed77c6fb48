package client

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// ServerStats contains the statistics of a server. A number that the server does not send
// is 0. "Since the start" means since the start of the server.
type ServerStats struct {
	// Current numbers of jobs. Urgent jobs are ready jobs with a priority below 1024.
	JobsUrgent   uint64 `stats:"current-jobs-urgent"`
	JobsReady    uint64 `stats:"current-jobs-ready"`
	JobsReserved uint64 `stats:"current-jobs-reserved"`
	JobsDelayed  uint64 `stats:"current-jobs-delayed"`
	JobsBuried   uint64 `stats:"current-jobs-buried"`

	// Commands contains the number of commands since the start, by name, such as
	// Commands["put"].
	Commands map[string]uint64 `stats:"cmd-"`

	JobTimeouts uint64 `stats:"job-timeouts"` // expired times to run since the start
	TotalJobs   uint64 `stats:"total-jobs"`   // jobs put since the start
	MaxJobSize  int64  `stats:"max-job-size"` // maximum size of a body in bytes

	Tubes            uint64 `stats:"current-tubes"`
	Connections      uint64 `stats:"current-connections"`
	Producers        uint64 `stats:"current-producers"` // connections that have put
	Workers          uint64 `stats:"current-workers"`   // connections that have reserved
	Waiting          uint64 `stats:"current-waiting"`   // connections that wait in a reserve
	TotalConnections uint64 `stats:"total-connections"` // number since the start

	PID     int64         `stats:"pid"`
	Version string        `stats:"version"` // version of the reference server; beanpole reports 1.13
	UTime   time.Duration `stats:"rusage-utime"`
	STime   time.Duration `stats:"rusage-stime"`
	Uptime  time.Duration `stats:"uptime"`

	BinlogOldestIndex     uint64 `stats:"binlog-oldest-index"`
	BinlogCurrentIndex    uint64 `stats:"binlog-current-index"`
	BinlogRecordsMigrated uint64 `stats:"binlog-records-migrated"`
	BinlogRecordsWritten  uint64 `stats:"binlog-records-written"`
	BinlogMaxSize         int64  `stats:"binlog-max-size"` // bytes of a file

	Draining bool   `stats:"draining"` // puts are refused
	ID       string `stats:"id"`       // random, new at each start
	Hostname string `stats:"hostname"`
	OS       string `stats:"os"`
	Platform string `stats:"platform"`

	// Server is "beanpole", or empty for other servers. ServerVersion is its version.
	Server        string `stats:"server"`
	ServerVersion string `stats:"server-version"`

	// All contains every entry that the server sent, by its key on the wire, including
	// those that only beanpole sends, such as journal-health. Quotes around strings are
	// removed.
	All map[string]string
}

// TubeStats contains the statistics of a tube.
type TubeStats struct {
	Name string `stats:"name"`

	// Current numbers of jobs, as in [ServerStats].
	JobsUrgent   uint64 `stats:"current-jobs-urgent"`
	JobsReady    uint64 `stats:"current-jobs-ready"`
	JobsReserved uint64 `stats:"current-jobs-reserved"`
	JobsDelayed  uint64 `stats:"current-jobs-delayed"`
	JobsBuried   uint64 `stats:"current-jobs-buried"`
	TotalJobs    uint64 `stats:"total-jobs"` // jobs put since the tube was created

	// Current numbers of connections.
	Using    uint64 `stats:"current-using"`
	Watching uint64 `stats:"current-watching"`
	Waiting  uint64 `stats:"current-waiting"`

	CmdDelete    uint64 `stats:"cmd-delete"`     // jobs deleted since the tube was created
	CmdPauseTube uint64 `stats:"cmd-pause-tube"` // pauses since the tube was created

	Pause     time.Duration `stats:"pause"` // requested length; 0 if not paused
	PauseLeft time.Duration `stats:"pause-time-left"`

	All map[string]string // as in [ServerStats]
}

// A State is the state of a job.
type State string

// The states of a job.
const (
	StateReady    State = "ready"
	StateDelayed  State = "delayed"
	StateReserved State = "reserved"
	StateBuried   State = "buried"
)

// JobStats contains the statistics of a job.
type JobStats struct {
	ID       uint64        `stats:"id"`
	Tube     string        `stats:"tube"`
	State    State         `stats:"state"`
	Priority uint32        `stats:"pri"`       // the job with the smallest is reserved first
	Age      time.Duration `stats:"age"`       // time since the put
	Delay    time.Duration `stats:"delay"`     // as last set
	TTR      time.Duration `stats:"ttr"`       // as set by the put
	TimeLeft time.Duration `stats:"time-left"` // time until a delayed job is ready or a time to run expires
	File     uint64        `stats:"file"`      // number of the journal segment that contains the job; 0 without a journal

	// Numbers of these events.
	Reserves uint64 `stats:"reserves"`
	Timeouts uint64 `stats:"timeouts"` // number of times that the time to run has expired
	Releases uint64 `stats:"releases"`
	Buries   uint64 `stats:"buries"`
	Kicks    uint64 `stats:"kicks"`

	All map[string]string // as in [ServerStats]
}

// Stats returns the statistics of the server.
func (c *commands) Stats(ctx context.Context) (*ServerStats, error) {
	return stats[ServerStats](ctx, c, wire.Command{Op: wire.Stats}, nil)
}

// StatsTube returns the statistics of a tube, or [ErrNotFound].
func (c *commands) StatsTube(ctx context.Context, tube string) (*TubeStats, error) {
	return stats[TubeStats](ctx, c, wire.Command{Op: wire.StatsTube, Tube: []byte(tube)}, CheckTube(tube))
}

// StatsJob returns the statistics of a job, or [ErrNotFound].
func (c *commands) StatsJob(ctx context.Context, id uint64) (*JobStats, error) {
	return stats[JobStats](ctx, c, wire.Command{Op: wire.StatsJob, ID: id}, nil)
}

// stats requests a struct of statistics. If err is not nil, it sends nothing.
func stats[S any](ctx context.Context, c *commands, cmd wire.Command, err error) (st *S, _ error) {
	err = c.ask(ctx, &request{Command: cmd, want: wire.OK}, err, func(r *wire.Reply) (err error) {
		st, err = parseStats[S](r)
		return err
	})
	return st, err
}

// parseStats fills a struct: the fields with a key in their tag, and All.
func parseStats[S any](r *wire.Reply) (*S, error) {
	entries, err := wire.ParseDict(r.Body)
	if err != nil {
		return nil, err
	}
	st := new(S)
	v := reflect.ValueOf(st).Elem()
	v.FieldByName("All").Set(reflect.ValueOf(entries))
	for i := range v.NumField() {
		key, field := v.Type().Field(i).Tag.Get("stats"), v.Field(i).Addr().Interface()
		if counts, ok := field.(*map[string]uint64); ok {
			*counts, err = countsOf(entries, key)
		} else if text, ok := entries[key]; ok {
			err = set(field, text)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	return st, nil
}

// countsOf returns the numbers whose keys start with prefix, by the rest of the key.
func countsOf(entries map[string]string, prefix string) (counts map[string]uint64, err error) {
	counts = make(map[string]uint64)
	for key, text := range entries {
		if name, ok := strings.CutPrefix(key, prefix); ok && err == nil {
			counts[name], err = strconv.ParseUint(text, 10, 64)
		}
	}
	return counts, err
}

// set parses text into a field. A time.Duration is in seconds, possibly with a fraction.
func set(field any, text string) (err error) {
	switch p := field.(type) {
	case *string:
		*p = text
	case *State:
		*p = State(text)
	case *bool:
		*p, err = strconv.ParseBool(text)
	case *int64:
		*p, err = strconv.ParseInt(text, 10, 64)
	case *uint64:
		*p, err = strconv.ParseUint(text, 10, 64)
	case *uint32:
		var n uint64
		n, err = strconv.ParseUint(text, 10, 32)
		*p = uint32(n)
	case *time.Duration:
		var s float64
		s, err = strconv.ParseFloat(text, 64)
		*p = time.Duration(math.Round(s * float64(time.Second)))
	}
	return err
}
