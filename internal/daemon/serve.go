package daemon

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"os"
	"runtime"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/coreos/go-systemd/v22/journal"

	"github.com/beanpole-mq/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/daemon/logqueue"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// Run runs a server until a signal ends it. version is that of the program, and out takes the
// log. The order is beanstalkd's: first
// the sockets, so that clients can queue while the rest starts, then the user,
// then the journal, as that user.
func Run(ctx context.Context, version string, line config.CommandLine, s *config.Settings, out *logqueue.Queue) error {
	opt := s.Options
	signals := catchSignals()
	defer signals.release()

	log, level := opt.Logger(out, onJournald())
	out.Dropped = func(lines int) {
		log.Warn("lines of the log were dropped: nobody has read them in time", "lines", lines)
	}
	opt.LogNotices(log)
	endpoints, err := opt.Endpoints()
	if err != nil {
		return err
	}
	if err := checkPorts(opt, endpoints); err != nil {
		return err
	}
	sec, err := newSecurity(opt, endpoints, log)
	if err != nil {
		return err
	}
	limits, err := opt.QueueLimits()
	if err != nil {
		return err
	}
	who, err := lookupAccount(opt.User)
	if err != nil {
		return err
	}
	listeners, err := openSockets(ctx, log, opt, endpoints, who)
	if err != nil {
		return err
	}
	defer closeAll(listeners) // for the failures below; else they are closed by then
	pages, err := listenAdmin(ctx, log, opt, sec, who)
	if err != nil {
		return err
	}
	defer pages.stop() // for the failures below
	if err := who.assume(); err != nil {
		return err
	}
	q, err := openQueue(version, opt.Journal, limits, opt.Slow, log)
	if err != nil {
		return err
	}
	spareProcessor()
	srv := server.New(q.broker, serverOptions(opt, log, q, sec))
	stopped := q.serve(srv)

	signals.catchTermination()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go giveMemoryBack(ctx, q)
	go watchCertificates(ctx, sec, log)
	about := newFacts(version, s, sec, listeners, pages)
	q.compareSettings(about)
	operations := newOperations(opt, log, q, srv, sec, about)
	pages.ready(opt, log, q, srv, sec, operations) // before a client is served, who may ask for them next
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { ended <- sec.serve(srv, l) }()
		log.Info("listening", "address", describe(l.Addr()))
		sec.warn(log, l)
	}
	log.Info("ready", "version", version, "pid", os.Getpid(), "journal", q.where)
	notify(log, daemon.SdNotifyReady)
	r := reloader{line: line, started: s, facts: about, log: log, level: level, security: sec, queue: q, server: srv}
	failed := signals.wait(log, srv.Drain, r.reload, ended, stopped)
	notify(log, daemon.SdNotifyStopping)
	q.handOver(log)
	stop(ctx, log, srv)
	operations.stop() // before the queue ends, which they ask
	pages.stop()
	reportSocketFiles(log, endpoints, listeners)
	return cmp.Or(failed, q.close())
}

// serverOptions returns what the options say to the server of a queue.
func serverOptions(opt *config.Options, log *slog.Logger, q *queue, sec *security) server.Options {
	o := server.Options{
		Access:       sec.Control,
		MaxJobSize:   int(min(opt.MaxJobSize, server.MaxJobSizeLimit)),
		MaxConns:     fitConnections(opt.MaxConns, ownDescriptors(opt, q.member != nil), log),
		MaxBuffers:   int64(min(opt.MaxBuffers, math.MaxInt64)),
		Limits:       opt.ClientLimits(),
		IdleTimeout:  opt.IdleTimeout,
		StallTimeout: opt.StallTimeout,
		Compat:       opt.Compat,
		Logger:       log,
		Trace:        opt.Verbose > 1,
		Version:      q.version,
		SegmentSize:  opt.Journal.SegmentSize(),
		Log:          q.logStats(),
		Member:       q.forServer(),
	}
	// Where we say 0, the server's zero is its default.
	if o.MaxJobSize == 0 {
		o.MaxJobSize = -1
	}
	if o.MaxBuffers == 0 {
		o.MaxBuffers = -1
	}
	if o.StallTimeout == 0 {
		o.StallTimeout = -1
	}
	return o
}

// onJournald reports whether journald reads the log.
func onJournald() bool {
	yes, err := journal.StderrIsJournalStream()
	return yes && err == nil
}

// spareProcessor lets Go code run on two processors where there is one: else the
// runtime takes the only one from the event loop whenever an fsync is long, and
// gives it back late (doc/decisions/0007). The environment variable GOMAXPROCS
// prevails.
func spareProcessor() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) == 1 {
		runtime.GOMAXPROCS(2)
	}
}

// shutdownGrace is how long clients may take to accept their last replies. It
// is shorter than the ten seconds after which container runtimes kill.
const shutdownGrace = 5 * time.Second

func stop(ctx context.Context, log *slog.Logger, srv *server.Server) {
	ctx, cancel := context.WithTimeout(ctx, shutdownGrace)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		log.Warn("some clients did not read their last replies", "waited", shutdownGrace)
	}
	log.Info("stopped")
}
