package config

import (
	"io/fs"
	"time"

	"github.com/beanpole-mq/beanpole/internal/admin"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/wal"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Options are what the command line, the environment and the configuration
// file say.
type Options struct {
	File   string // the configuration file; empty: none
	Tables Tables // of it

	Listen   []string // as given; parsed when the port is known
	Port     string
	UnixMode fs.FileMode
	User     string          // to become; empty: none
	Terms    ListenerOptions // of the listeners that Listen says, and of the admin pages

	MaxJobSize   uint64 // bytes
	MaxConns     int
	MaxBuffers   uint64        // bytes; 0: any number
	IdleTimeout  time.Duration // 0: never
	StallTimeout time.Duration // 0: never
	Compat       wire.Compat

	Journal Journal
	Admin   Admin
	Slow    Slow

	Verbose int // 1: log connections, 2: commands too
	Version bool

	limits             limits
	jsonLog            bool
	compact, noCompact bool // -c and -n, which do nothing
	strangeVariables   []string
}

// Journal says where and how jobs are kept on disk.
type Journal struct {
	Dir   string        // empty: in memory only
	Fsync time.Duration // as journal.Options.Sync has it

	Member       bool // Dir must be that of a member of a cluster
	FastFailover bool // of a member of a cluster: see cluster.Options

	asked uint64 // size of a segment in bytes, as given
}

// SegmentSize returns the size of a segment in bytes: what was asked for, within
// the limits of the journal.
func (j *Journal) SegmentSize() int64 {
	size := int64(min(max(j.asked, wal.MinSegmentSize), wal.MaxSegmentSize))
	return (size + 7) &^ 7
}

const neverSync = time.Duration(-1) // as journal.Options.Sync has it

// Admin says what the admin pages are.
type Admin struct {
	Addr     string // as given; empty: there are none
	Tubes    int    // so many have metrics of their own
	Profiles bool

	Console, ConsoleReadOnly bool
}

// defaultAdminPort is the port of --admin if it names none.
const defaultAdminPort = "11380"

// Address returns where the admin pages are.
func (a *Admin) Address() (server.Address, error) {
	return server.ParseAddress(a.Addr, defaultAdminPort)
}

// Slow says what is slow enough for a line in the log; 0: nothing is.
type Slow struct {
	Turn, Sync time.Duration
}

// limits say how much the queue takes; 0 is no limit.
type limits struct {
	memory    uint64 // bytes
	tubes     int
	watches   int // tubes of a connection
	ofAddress int // connections
	commands  int // a second, of an identity or address
}

// Default returns what holds when no source says otherwise.
func Default() Options {
	return Options{
		Port:         server.DefaultPort,
		UnixMode:     server.DefaultUnixMode,
		MaxJobSize:   server.DefaultMaxJobSize,
		MaxConns:     server.DefaultMaxConns,
		MaxBuffers:   server.DefaultMaxBuffers,
		StallTimeout: server.DefaultStallTimeout,
		Journal:      Journal{asked: wal.DefaultSegmentSize, FastFailover: true},
		Admin:        Admin{Tubes: admin.DefaultTubes, Console: true},
		Slow:         Slow{Turn: 50 * time.Millisecond, Sync: time.Second},
	}
}
