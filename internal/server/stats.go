package server

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beanpole-mq/beanpole/internal/conversation"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/engine/histogram"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// JournalStats contains the state of the journal.
type JournalStats struct {
	Health                          string // a problem; empty if there is none
	Refusal                         string // reason why it refuses changes or new jobs; empty if it accepts them
	OldestSegment, CurrentSegment   uint64 // sequence numbers
	Segments                        int
	Bytes, LiveBytes                int64
	RecordsWritten, RecordsMigrated uint64              // number since the start; RecordsMigrated by compaction
	Syncs                           histogram.Histogram // durations of syncs in ns
}

// process contains the statistics of this process and its machine.
type process struct {
	instance uint64
	hostname string
	os       string
	platform string
}

func newProcess() process {
	var id [8]byte
	rand.Read(id[:]) // never fails
	p := process{instance: binary.BigEndian.Uint64(id[:])}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		text := func(b []byte) string { b, _, _ = bytes.Cut(b, []byte{0}); return string(b) }
		p.hostname, p.os, p.platform = text(u.Nodename[:]), text(u.Version[:]), text(u.Machine[:])
	}
	return p
}

// cpu returns the CPU time used by the process.
func cpu() (user, system time.Duration) {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0, 0
	}
	return time.Duration(r.Utime.Nano()), time.Duration(r.Stime.Nano())
}

// stats returns the values of a client's stats command. It must be called within a turn.
// commands counts the commands by kind.
func (s *Server) stats(e *engine.Engine, commands *[wire.NumOps]uint64, asker conversation.Owner) *wire.ServerStats {
	st := e.Stats()
	user, system := cpu()
	ws := &wire.ServerStats{
		Compat:           s.opt.Compat,
		Urgent:           st.Urgent,
		Ready:            st.Ready,
		Reserved:         st.Reserved,
		Delayed:          st.Delayed,
		Buried:           st.Buried,
		Commands:         *commands,
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
		Uptime:           time.Since(s.begun),
		SegmentSize:      s.opt.SegmentSize,
		Draining:         e.IsDraining(),
		Instance:         s.self.instance,
		Hostname:         s.self.hostname,
		OS:               s.self.os,
		Platform:         s.self.platform,
	}
	count := func(key string, n uint64) {
		ws.Extra = append(ws.Extra, wire.Stat{Key: key, Value: strconv.FormatUint(n, 10)})
	}
	ws.Extra = []wire.Stat{
		{Key: "server", Value: "beanpole", Quoted: true},
		{Key: "server-version", Value: s.opt.Version, Quoted: true},
	}
	for _, op := range wire.OwnCounters {
		count(op.Counter(), commands[op])
	}
	count("rejected-connections-of-address", s.crowded.Load())
	count("buffers-memory", uint64(s.shared.Memory.Held()))
	count("closed-for-memory", s.evicted.Load())
	count("max-connections", uint64(s.opt.MaxConns))
	count("processors", uint64(runtime.GOMAXPROCS(0)))
	count("refused-connections", s.refusedConnections.Load())
	count("refused-commands", s.refusedCommands.Load())
	refused := e.Refusals()
	count("refused-by-max-memory", refused[engine.MemoryLimit])
	count("refused-by-tube-limit", refused[engine.TubeJobsLimit]+refused[engine.TubeBytesLimit])
	count("refused-by-max-tubes", refused[engine.TubesLimit])
	count("refused-by-max-watched", refused[engine.WatchesLimit])
	acted := e.PolicyCounts()
	count("policy-exhausted", acted.Exhausted())
	count("policy-retried", acted[engine.Retried])
	count("policy-expired", acted.Expired())
	count("policy-skipped", acted[engine.PolicySkipped]+acted[engine.DeadTubeFull])
	count("policy-deduplicated", acted[engine.Deduplicated])
	ws.Extra = append(ws.Extra, wire.Stat{Key: "connections-full", Value: strconv.FormatBool(s.slots.full())})
	if s.opt.Journal != nil {
		j := s.opt.Journal()
		ws.OldestSegment, ws.CurrentSegment = j.OldestSegment, j.CurrentSegment
		ws.RecordsMigrated, ws.RecordsWritten = j.RecordsMigrated, j.RecordsWritten
		ws.Extra = append(ws.Extra, wire.Stat{Key: "journal-health", Value: cmp.Or(j.Health, "ok"), Quoted: true})
		count("journal-bytes", uint64(j.Bytes))
		count("journal-live-bytes", uint64(j.LiveBytes))
		count("journal-segments", uint64(j.Segments))
	}
	if m := s.opt.Cluster; m != nil {
		ws.Extra = append(ws.Extra, m.Stats(s.askedMember(asker))...)
	}
	return ws
}

// Counts contains the counters of a server since its start, in addition to those of its
// engine.
type Counts struct {
	Commands           map[string]uint64 // by verb
	CrowdedConnections uint64            // connections closed because their address had too many
	RefusedConnections uint64            // connections refused by a listener's requirements
	RefusedCommands    map[string]uint64 // by reply, such as OUT_OF_MEMORY
	MaxConnections     int               // the limit
	Full               bool              // MaxConnections is reached, and new clients wait
	Buffers            int64             // size of the clients' input and replies in bytes
	MaxBuffers         int64             // maximum of Buffers; 0 means no limit
	ClosedForMemory    uint64            // connections closed because of that limit
	Resumed            uint64            // clients resumed after a change of leader
	RefusedClaims      map[string]uint64 // claims of resumed clients, by reason; nil without a cluster
	MaxJobSize         int               // maximum size of a body in bytes
	Uptime             time.Duration
}

// refusalWords contains the replies that refuse a command. Other unsuccessful replies,
// such as NOT_FOUND, are ordinary answers.
var refusalWords = []wire.Word{wire.Unauthorized, wire.OutOfMemory, wire.Draining, wire.JobTooBig, wire.BadFormat, wire.ExpectedCRLF,
	wire.UnknownCommand, wire.InternalError}

// Counts returns the counters. It must be called within a turn.
func (s *Server) Counts() Counts {
	c := Counts{
		Commands:           make(map[string]uint64),
		CrowdedConnections: s.crowded.Load(),
		RefusedConnections: s.refusedConnections.Load(),
		RefusedCommands:    make(map[string]uint64),
		MaxConnections:     s.opt.MaxConns,
		Full:               s.slots.full(),
		Buffers:            s.shared.Memory.Held(),
		MaxBuffers:         max(s.opt.MaxBuffers, 0),
		ClosedForMemory:    s.evicted.Load(),
		Resumed:            uint64(s.resumed.Load()),
		MaxJobSize:         s.opt.MaxJobSize,
		Uptime:             time.Since(s.begun),
	}
	if s.opt.Cluster != nil {
		c.RefusedClaims = make(map[string]uint64)
		for i, reason := range claimReasons {
			c.RefusedClaims[reason] = s.claimsRefused[i].Load()
		}
	}
	for _, w := range refusalWords {
		c.RefusedCommands[w.String()] = s.shared.Unsuccessful(w)
	}
	for op, n := range s.shared.Commands() {
		if op := wire.Op(op); op != wire.Unknown && op != wire.Quit && op != wire.Auth {
			c.Commands[op.String()] = n
		}
	}
	return c
}

// defaultSegmentSize is beanstalkd's default, in bytes.
const defaultSegmentSize = 10 << 20
