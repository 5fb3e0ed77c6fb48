package daemon

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/coreos/go-systemd/v22/journal"

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/daemon/asynclog"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// Options configures Run.
type Options struct {
	Version string             // version of the program
	Line    config.CommandLine // the command line; read again on SIGHUP
	Log     *asynclog.Queue    // receives the lines of the log
}

// Run runs a server until a signal stops it or ctx is canceled. During the start, such
// signals kill the process at once, which does no damage at any point.
func Run(ctx context.Context, o Options) error {
	signals := make(chan os.Signal, 8)
	signal.Ignore(syscall.SIGPIPE)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGHUP)
	defer signal.Stop(signals)
	return run(ctx, o, signals)
}

// run is Run with signals that are already caught. It works in beanstalkd's order: it
// opens the sockets first, so that clients can connect during the rest of the start, then
// changes the user, and then opens the journal.
func run(ctx context.Context, o Options, signals chan os.Signal) error {
	s, err := o.Line.Read()
	if err != nil {
		return err
	}
	opt := s.Options
	log, level := opt.Logger(o.Log, onJournald())
	o.Log.Dropped = func(lines int) {
		log.Warn("dropped log lines; the reader of the log is too slow", "lines", lines)
	}
	opt.LogNotices(log)
	p, err := newPlan(o.Version, s, log)
	if err != nil {
		return err
	}
	for _, warning := range p.security.certificateWarnings() {
		log.Warn(warning)
	}
	listeners, err := openSockets(ctx, p)
	if err != nil {
		return err
	}
	defer closeAll(listeners) // for the failures below; otherwise, they are closed by then
	pages, err := listenAdmin(ctx, p, listeners)
	if err != nil {
		return err
	}
	defer pages.stop() // for the failures below
	if err := p.account.dropPrivileges(); err != nil {
		return err
	}
	q, err := openQueue(p)
	if err != nil {
		return err
	}
	spareProcessor()
	srv := server.New(q.broker, serverOptions(p, q))
	stopped := q.serve(srv)

	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go freeOSMemory(background, q, srv)
	about := newServerInfo(p, listeners, pages)
	q.reportToLeader(about)
	operations := newOperations(p, q, srv, about, pages)
	pages.ready(p, q, srv, operations) // before any client is served, because clients can request the pages
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { ended <- p.security.serve(srv, l) }()
		log.Info("listening", "address", describe(l.Addr()))
		p.security.warn(log, l)
	}
	log.Info("ready", "version", o.Version, "pid", os.Getpid(), "journal", q.where)
	notify(log, daemon.SdNotifyReady)
	go feedWatchdog(background, q.broker, log)
	r := reloader{plan: p, line: o.Line, serverInfo: about, level: level, queue: q, server: srv}
	drain := func() {
		if !srv.SetDraining(true) {
			log.Warn("USR1 is ignored: this member does not lead the cluster; send it to the leader, or use 'beanpole drain'")
		}
	}
	failed := waitForSignal(ctx, signals, log, drain, r.reload, ended, stopped)
	notify(log, daemon.SdNotifyStopping)
	q.handOver(log)
	q.broker.Configure(func(e *engine.Engine) { e.SetPolicies(nil) }) // workers whose connections the server closes have not failed
	stop(background, log, srv)
	operations.stop() // before the queue ends, because they use it
	pages.stop()
	return cmp.Or(failed, q.close())
}

// serverOptions returns the options of the server of a queue.
func serverOptions(p *plan, q *queue) server.Options {
	opt := p.opt
	o := opt.Server
	// In our options zero means no limit; in the server's options it means the default.
	o.MaxJobSize = cmp.Or(int(min(opt.MaxJobSize, server.MaxJobSizeLimit)), -1)
	o.MaxBuffers, o.StallTimeout = cmp.Or(o.MaxBuffers, -1), cmp.Or(o.StallTimeout, -1)
	o.MaxConns = fitConnections(o.MaxConns, ownDescriptors(opt, q.member != nil), p.log)
	o.SegmentSize = opt.Journal.SegmentSize()
	o.Access = p.security.Control
	o.Version, o.Logger, o.Trace = p.version, p.log, opt.Verbose > 1
	o.Journal, o.Cluster = q.journalStats(), q.forServer()
	return o
}

// feedWatchdog notifies the service manager while turns run, if the service manager
// requests it. It stops if a turn hangs, so that the service manager restarts the server.
func feedWatchdog(ctx context.Context, b *broker.Broker, log *slog.Logger) {
	timeout, err := daemon.SdWatchdogEnabled(false)
	if err != nil || timeout == 0 {
		return
	}
	for tick := time.Tick(timeout / 3); ; {
		b.View(func(*engine.Engine, int64) {})
		notify(log, daemon.SdNotifyWatchdog)
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// onJournald reports whether journald reads the log.
func onJournald() bool {
	yes, err := journal.StderrIsJournalStream()
	return yes && err == nil
}

// spareProcessor lets Go code run on two processors on a machine with one. Otherwise, the
// runtime takes the only processor from the event loop during a long fsync and returns it
// late (doc/decisions/0007). The environment variable GOMAXPROCS takes precedence.
func spareProcessor() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) == 1 {
		runtime.GOMAXPROCS(2)
	}
}

// shutdownGrace is the maximum time for clients to read their last replies. It is shorter
// than the ten seconds after which container runtimes kill a process.
const shutdownGrace = 5 * time.Second

func stop(ctx context.Context, log *slog.Logger, srv *server.Server) {
	ctx, cancel := context.WithTimeout(ctx, shutdownGrace)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		log.Warn("some clients did not read their last replies", "waited", shutdownGrace)
	}
	log.Info("stopped")
}
