package config

import (
	"io/fs"
	"time"

	"github.com/beanpole-mq/beanpole/internal/admin"
	"github.com/beanpole-mq/beanpole/internal/adminsocket"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/history"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// Options contains the values from the command line, the environment and the
// configuration file.
type Options struct {
	File   string // path of the configuration file, or empty
	Tables Tables // the tables of the file

	Listen   []string // addresses as given; parsed when the port is known
	Port     string
	UnixMode fs.FileMode
	User     string          // user to become, or empty
	Terms    ListenerOptions // requirements of the listeners in Listen, and of the admin listener

	MaxJobSize int64          // bytes
	Server     server.Options // some of its options; 0 means none, even if the zero value of server.Options means a default
	Queue      engine.Limits  // excludes the limits of tubes, which are in Tables

	Journal Journal
	Admin   Admin
	Slow    Slow

	Verbose int // 1 logs connections, 2 also commands
	Version bool

	logFormat  string
	compaction bool // -c or -n, which do nothing
}

// Journal configures how jobs are stored on disk.
type Journal struct {
	Dir   string        // empty if jobs are in memory only
	Fsync time.Duration // see journal.Options.Sync

	History int64 // maximum size of the history in bytes

	Member       bool // Dir must belong to a cluster member
	FastFailover bool // see cluster.Options

	asked int64 // requested size of a segment in bytes
}

// SegmentSize returns the configured size of a segment in bytes, within the limits of the
// journal.
func (j *Journal) SegmentSize() int64 {
	size := min(max(j.asked, wal.MinSegmentSize), wal.MaxSegmentSize)
	return (size + 7) &^ 7
}

const neverSync = time.Duration(-1) // see journal.Options.Sync

// Admin configures the admin listener.
type Admin struct {
	Addr     string   // as given; if it is empty, only Socket is served
	Socket   string   // path, NoSocket, or empty for the first usable path of adminsocket.Paths
	Hosts    []string // host names that requests from a proxy on loopback can contain
	Tubes    int      // number of tubes with metrics
	Profiles bool

	Console, ConsoleReadOnly bool
}

// NoSocket is the value of Admin.Socket that turns the local socket off.
const NoSocket = "none"

// Address returns the parsed Addr.
func (a *Admin) Address() (server.Address, error) {
	return server.ParseAddress(a.Addr, adminsocket.DefaultPort)
}

// Slow contains the durations above which a turn or a sync is logged as slow. Zero means
// never.
type Slow struct {
	Turn, Sync time.Duration
}

// Default returns the default options.
func Default() Options {
	return Options{
		Port:       server.DefaultPort,
		UnixMode:   server.DefaultUnixMode,
		MaxJobSize: server.DefaultMaxJobSize,
		Server:     server.Options{MaxConns: server.DefaultMaxConns, MaxBuffers: server.DefaultMaxBuffers, StallTimeout: server.DefaultStallTimeout},
		Journal:    Journal{asked: wal.DefaultSegmentSize, History: history.DefaultLimit, FastFailover: true},
		Admin:      Admin{Tubes: admin.DefaultTubes, Console: true},
		logFormat:  "text",
		Slow:       Slow{Turn: 50 * time.Millisecond, Sync: time.Second},
	}
}
