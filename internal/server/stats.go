package server

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// LogStats is what stats tells of the journal.
type LogStats struct {
	OldestSegment, CurrentSegment   uint64 // sequence numbers
	RecordsMigrated, RecordsWritten uint64 // since the start
	Extra                           []wire.Stat
}

// process is what stats tells of this process and its machine.
type process struct {
	start    time.Time
	instance uint64
	hostname string
	os       string
	platform string
}

func newProcess() process {
	var id [8]byte
	rand.Read(id[:]) // never fails
	p := process{start: time.Now(), instance: binary.BigEndian.Uint64(id[:])}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		text := func(b []byte) string { b, _, _ = bytes.Cut(b, []byte{0}); return string(b) }
		p.hostname, p.os, p.platform = text(u.Nodename[:]), text(u.Version[:]), text(u.Machine[:])
	}
	return p
}

// cpu returns the processor time that the process has used.
func cpu() (user, system time.Duration) {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0, 0
	}
	return time.Duration(r.Utime.Nano()), time.Duration(r.Stime.Nano())
}

func (c *conn) stats(e *engine.Engine, _ int64) {
	s, st := c.srv, e.Stats()
	user, system := cpu()
	ws := wire.ServerStats{
		Compat:           s.opt.Compat,
		Urgent:           st.Urgent,
		Ready:            st.Ready,
		Reserved:         st.Reserved,
		Delayed:          st.Delayed,
		Buried:           st.Buried,
		Commands:         s.commands,
		Timeouts:         st.Timeouts,
		TotalJobs:        st.TotalJobs,
		MaxBody:          s.opt.MaxJobSize,
		Tubes:            st.Tubes,
		Connections:      st.Sessions,
		Producers:        st.Producers,
		Workers:          st.Workers,
		Waiting:          st.Waiting,
		TotalConnections: st.TotalSessions,
		PID:              os.Getpid(),
		User:             user,
		System:           system,
		Uptime:           time.Since(s.self.start),
		SegmentSize:      s.opt.SegmentSize,
		Draining:         e.IsDraining(),
		Instance:         s.self.instance,
		Hostname:         s.self.hostname,
		OS:               s.self.os,
		Platform:         s.self.platform,
	}
	ws.Extra = []wire.Stat{
		{Key: "server", Value: "beanpole", Quoted: true},
		{Key: "server-version", Value: s.opt.Version, Quoted: true},
		{Key: "cmd-reserve-job", Value: strconv.FormatUint(s.commands[wire.ReserveJob], 10)},
		{Key: "cmd-kick-job", Value: strconv.FormatUint(s.commands[wire.KickJob], 10)},
		{Key: "rejected-connections", Value: strconv.FormatUint(s.rejected.Load(), 10)},
		{Key: "max-connections", Value: strconv.Itoa(s.opt.MaxConns)},
		{Key: "processors", Value: strconv.Itoa(runtime.GOMAXPROCS(0))},
	}
	if s.opt.Log != nil {
		l := s.opt.Log()
		ws.OldestSegment, ws.CurrentSegment = l.OldestSegment, l.CurrentSegment
		ws.RecordsMigrated, ws.RecordsWritten = l.RecordsMigrated, l.RecordsWritten
		ws.Extra = append(ws.Extra, l.Extra...)
	}
	c.out = wire.AppendStats(c.out, &ws)
}

// defaultSegmentSize is that of beanstalkd, in bytes.
const defaultSegmentSize = 10 << 20

func (c *conn) statsTube(e *engine.Engine, now int64, name []byte) {
	st, o := e.TubeStats(now, name)
	if o != engine.OK {
		c.word(outcomeWords[o])
		return
	}
	c.out = wire.AppendTubeStats(c.out, &wire.TubeStats{
		Compat:    c.srv.opt.Compat,
		Name:      string(name),
		Urgent:    st.Urgent,
		Ready:     st.Ready,
		Reserved:  st.Reserved,
		Delayed:   st.Delayed,
		Buried:    st.Buried,
		TotalJobs: st.TotalJobs,
		Using:     st.Using,
		Watching:  st.Watching,
		Waiting:   st.Waiting,
		Deletes:   st.Deletes,
		Pauses:    st.Pauses,
		Pause:     st.Pause,
		PauseLeft: st.PauseLeft,
	})
}

func (c *conn) statsJob(e *engine.Engine, now int64, id uint64) {
	st, o := e.JobStats(now, id)
	if o != engine.OK {
		c.word(outcomeWords[o])
		return
	}
	c.out = wire.AppendJobStats(c.out, &wire.JobStats{
		Compat:   c.srv.opt.Compat,
		ID:       st.ID,
		Tube:     st.Tube,
		State:    st.State.String(),
		Pri:      st.Pri,
		Age:      st.Age,
		Delay:    st.Delay,
		TTR:      st.TTR,
		TimeLeft: st.TimeLeft,
		File:     uint64(st.Mark),
		Reserves: st.Reserves,
		Timeouts: st.Timeouts,
		Releases: st.Releases,
		Buries:   st.Buries,
		Kicks:    st.Kicks,
	})
}
