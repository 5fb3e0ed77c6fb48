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

// serverDescriptors is how many files the server needs besides its connections: the
// journal's segments and directory, listeners, event loops, the log.
const serverDescriptors = 32

// ownDescriptors returns how many files are not for connections of the queue.
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

// openFiles returns how many files the process may have open. The limit is its hard one: the
// Go runtime has raised the other.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32
	}
	return min(uint64(limit.Cur), math.MaxInt32)
}

// fitConnections returns how many connections there may be, as many as were
// asked for at most, so that the journal never lacks a descriptor.
func fitConnections(asked, own int, log *slog.Logger) int {
	open := int(openFiles())
	fit := fitting(asked, open-own)
	if fit == asked {
		return asked
	}
	level := slog.LevelWarn
	if asked == server.DefaultMaxConns {
		level = slog.LevelInfo // as on most machines of developers
	}
	log.Log(context.Background(), level, "the limit of open files leaves room for fewer connections", "open-files", open, "max-connections", asked, "connections", fit)
	return fit
}

// fitting returns the largest number of connections, up to the one asked for, for which there
// are files; 1 at least.
func fitting(asked, files int) int { return max(1, min(asked, files)) }
