package daemon

import (
	"context"
	"log/slog"
	"math"
	"syscall"

	"github.com/beanpole-mq/beanpole/internal/cluster/transport"
	"github.com/beanpole-mq/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// serverDescriptors is the number of file descriptors that the server needs in addition
// to its connections: for journal segments, directories, listeners, event loops and the
// log.
const serverDescriptors = 32

// ownDescriptors returns the number of file descriptors that are reserved for uses other
// than client connections.
func ownDescriptors(opt *config.Options, isMember bool) int {
	own := serverDescriptors
	if isMember {
		own += transport.Descriptors
	}
	if opt.Admin.Addr != "" {
		own += adminConnections
	}
	if opt.Admin.Socket != config.NoSocket {
		own += socketConnections
	}
	return own
}

// openFiles returns the maximum number of open files of the process. The Go runtime has
// raised the soft limit to the hard limit.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32
	}
	return min(uint64(limit.Cur), math.MaxInt32)
}

// fitConnections returns the largest number of connections, up to asked, that leaves
// enough file descriptors for the journal.
func fitConnections(asked, own int, log *slog.Logger) int {
	open := int(openFiles())
	fit := max(1, min(asked, open-own))
	if fit == asked {
		return asked
	}
	level := slog.LevelWarn
	if asked == server.DefaultMaxConns {
		level = slog.LevelInfo // as on most developers' machines
	}
	log.Log(context.Background(), level, "the limit of open files allows fewer connections", "open-files", open, "max-connections", asked, "connections", fit)
	return fit
}
