package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"runtime"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/wal"
)

// serveOptions are what the command line and the environment say.
type serveOptions struct {
	listen   []string // as given; parsed when the port is known
	port     string
	unixMode fs.FileMode
	user     string

	maxJobSize   uint64
	maxConns     int
	idleTimeout  time.Duration // 0: never
	stallTimeout time.Duration // 0: never

	journal journalOptions

	verbose int
	jsonLog bool
	version bool

	compact, noCompact bool // -c and -n, which do nothing
}

// journalOptions say where and how jobs are kept on disk.
type journalOptions struct {
	dir   string // empty: in memory only
	asked uint64 // size of a segment in bytes, as given
	fsync time.Duration
}

// segmentSize returns the size of a segment in bytes: what was asked for, within
// the limits of the journal.
func (opt *journalOptions) segmentSize() int64 {
	size := int64(min(max(opt.asked, wal.MinSegmentSize), wal.MaxSegmentSize))
	return (size + 7) &^ 7
}

const fsyncNever = time.Duration(-1) // as journal.Options.Sync has it

const serveLong = `Run the server. Without options it listens on 127.0.0.1:11300 and keeps its jobs
in memory.

The command "serve" may be left out. All options of beanstalkd work, bundled
letters (-VVp0) included, and later ones override earlier ones; only -l adds up.

Each option can be set by an environment variable too, named after its long
form: BEANPOLE_MAX_JOB_SIZE=1000000, BEANPOLE_LISTEN=10.0.0.1,unix:/run/bean.sock.
What is on the command line wins. Defaults are in parentheses below.`

const serveExample = `  beanpole                                     127.0.0.1:11300
  beanpole -l 0.0.0.0 -p 11301                 every IPv4 address, port 11301
  beanpole -l 10.0.0.1 -l unix:/run/bean.sock  a network and a unix socket
  beanpole -l :: -u nobody -z 1000000          IPv6 and IPv4, 1 MB jobs

Signals:
  TERM, INT   stop: finish what has begun, close the connections, exit with 0;
              a second one exits at once
  USR1        drain: refuse new jobs from now on, serve the rest
  HUP         ignored`

func newServe() *cobra.Command {
	opt := serveOptions{
		port:         server.DefaultPort,
		unixMode:     server.DefaultUnixMode,
		maxJobSize:   server.DefaultMaxJobSize,
		maxConns:     server.DefaultMaxConns,
		stallTimeout: server.DefaultStallTimeout,
		journal:      journalOptions{asked: wal.DefaultSegmentSize},
	}
	cmd := &cobra.Command{
		Use:                   "serve [options]",
		Short:                 "run the server (the default)",
		Long:                  serveLong,
		Example:               serveExample,
		DisableFlagsInUseLine: true,
		Args:                  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opt.version {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "beanpole %s\n", version())
				return err
			}
			if err := fromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			return serve(cmd.Context(), &opt, cmd.ErrOrStderr())
		},
	}
	opt.define(cmd)
	return cmd
}

func (opt *serveOptions) define(cmd *cobra.Command) {
	addFlags(cmd, "Sockets", func(fs *pflag.FlagSet) {
		fs.FuncP("listen", "l", "listen on `ADDR`: IP, NAME, IP:PORT, [IPv6]:PORT,\n"+
			":PORT or unix:PATH; may be repeated; a name means\n"+
			"the first of its IPs that can be bound, :: means\n"+
			"IPv4 too (127.0.0.1)", opt.addListen)
		fs.Lookup("listen").Annotations = map[string][]string{repeatsKey: nil}
		fs.FuncP("port", "p", "`PORT`, number or service, of each ADDR without one;\n"+
			"0: any that is free (11300)", into(&opt.port, parsePort))
		fs.FuncP("user", "u", "become this `USER`, by name or number, and its\n"+
			"groups when the sockets are open", into(&opt.user, parseUser))
		fs.Func("unix-mode", "permissions of unix sockets, octal; with -u they\n"+
			"belong to USER (`0660`)", into(&opt.unixMode, parseMode))
	})
	addFlags(cmd, "Limits", func(fs *pflag.FlagSet) {
		fs.FuncP("max-job-size", "z", "largest body of a job, in `BYTES`, at most\n"+
			"1073741824 (65535)", into(&opt.maxJobSize, parseBytes))
		fs.Func("max-connections", fmt.Sprintf("close connections beyond these `N` (%d)", server.DefaultMaxConns),
			intoCount(&opt.maxConns, "connections"))
		fs.Func("idle-timeout", "close a connection that has sent nothing for this\n"+
			"`TIME`, such as 5m, unless it waits for a job;\n"+
			"0: never (0)", into(&opt.idleTimeout, parseDuration))
		fs.Func("stall-timeout", "close a connection that stops in the middle of a\n"+
			"command, or does not read its replies, for this\n"+
			"`TIME`; 0: never (1m)", into(&opt.stallTimeout, parseDuration))
	})
	addFlags(cmd, "Journal", func(fs *pflag.FlagSet) {
		fs.FuncP("journal", "b", "keep the jobs in `DIR`, which must exist; files of\n"+
			"beanstalkd in it are taken over (in memory only)", into(&opt.journal.dir, parseDir))
		fs.FuncP("fsync-interval", "f", "sync at most once in `MS` milliseconds, after the\n"+
			"reply; 0: before each reply (0)", into(&opt.journal.fsync, parseMillis))
		fs.BoolFuncP("no-fsync", "F", "never sync: the system decides when to write", opt.setNoFsync)
		fs.FuncP("segment-size", "s", "size of a file of the journal, in `BYTES`, 512 to\n"+
			"1073741824 (10485760)", into(&opt.journal.asked, parseBytes))
	})
	addFlags(cmd, "Log (on standard error) and others", func(fs *pflag.FlagSet) {
		fs.BoolFuncP("verbose", "V", "log connections too; -VV: and each command", opt.addVerbose)
		fs.Func("log-format", "`FORMAT` of the log: text or json (text)", into(&opt.jsonLog, parseLogFormat))
		fs.BoolVarP(&opt.version, "version", "v", false, "print the version and exit")
		fs.BoolP("help", "h", false, "print this help and exit")
		fs.BoolVarP(&opt.compact, "c", "c", false, "")
		fs.BoolVarP(&opt.noCompact, "n", "n", false, "")
		fs.Lookup("c").Hidden, fs.Lookup("n").Hidden = true, true
	})
}

func (opt *serveOptions) addListen(s string) error {
	_, err := server.ParseAddress(s, server.DefaultPort)
	opt.listen = append(opt.listen, s)
	return err
}

// setNoFsync is -F. A later -f overrides it, and it an earlier -f.
func (opt *serveOptions) setNoFsync(s string) error {
	never, err := parseSwitch(s)
	if never {
		opt.journal.fsync = fsyncNever
	}
	return err
}

// addVerbose is -V, which comes as "true", or a level.
func (opt *serveOptions) addVerbose(s string) error {
	if s == "true" {
		opt.verbose++
		return nil
	}
	n, err := parseNumber(s, "a level", math.MaxInt32)
	opt.verbose = int(n)
	return err
}

func parsePort(s string) (string, error) { return s, server.CheckPort(s) }

func parseDir(s string) (string, error) {
	if s == "" {
		return "", errors.New("want a directory")
	}
	return s, nil
}

func parseLogFormat(s string) (json bool, err error) {
	if s != "text" && s != "json" {
		return false, errors.New("want text or json")
	}
	return s == "json", nil
}

// addresses are where to listen, now that all options are known.
func (opt *serveOptions) addresses() ([]server.Address, error) {
	listen := opt.listen
	if len(listen) == 0 {
		listen = []string{server.DefaultHost}
	}
	addrs := make([]server.Address, len(listen))
	for i, s := range listen {
		a, err := server.ParseAddress(s, opt.port)
		if err != nil {
			return nil, err
		}
		addrs[i] = a
	}
	return addrs, nil
}

// logger returns what the options ask for: level info, with -V debug.
func (opt *serveOptions) logger(w io.Writer) *slog.Logger {
	h := slog.HandlerOptions{Level: slog.LevelInfo}
	if opt.verbose > 0 {
		h.Level = slog.LevelDebug
	}
	if opt.jsonLog {
		return slog.New(slog.NewJSONHandler(w, &h))
	}
	return slog.New(slog.NewTextHandler(w, &h))
}

// notices tells of options that do not do what they say.
func (opt *serveOptions) notices(log *slog.Logger) {
	for _, o := range []struct {
		given  bool
		letter string
	}{{opt.compact, "-c"}, {opt.noCompact, "-n"}} {
		if o.given {
			log.Warn("option " + o.letter + " has no effect: the journal is always compacted")
		}
	}
	if size := opt.journal.segmentSize(); opt.journal.asked < wal.MinSegmentSize || opt.journal.asked > wal.MaxSegmentSize {
		log.Warn("option -s is out of bounds: the nearest size is taken", "asked", opt.journal.asked, "bytes", size)
	}
	if opt.maxJobSize > server.MaxJobSizeLimit {
		log.Warn("option -z is too large: the largest job is smaller", "asked", opt.maxJobSize, "bytes", server.MaxJobSizeLimit)
	}
}

// server returns the options of the server.
func (opt *serveOptions) server(log *slog.Logger, q *queue) server.Options {
	o := server.Options{
		MaxJobSize:   int(min(opt.maxJobSize, server.MaxJobSizeLimit)),
		MaxConns:     opt.maxConns,
		IdleTimeout:  opt.idleTimeout,
		StallTimeout: opt.stallTimeout,
		Logger:       log,
		Trace:        opt.verbose > 1,
		Version:      version(),
		SegmentSize:  opt.journal.segmentSize(),
		Log:          q.logStats(),
	}
	// Where we say 0, the server's zero is its default.
	if o.MaxJobSize == 0 {
		o.MaxJobSize = -1
	}
	if o.StallTimeout == 0 {
		o.StallTimeout = -1
	}
	return o
}

// serve runs a server until a signal ends it. The order is beanstalkd's: first
// the sockets, so that clients can queue while the rest starts, then the user,
// then the journal, as that user.
func serve(ctx context.Context, opt *serveOptions, stderr io.Writer) error {
	signals := catchSignals()
	defer signals.release()

	log := opt.logger(stderr)
	opt.notices(log)
	who, err := lookupIdentity(opt.user)
	if err != nil {
		return err
	}
	listeners, err := opt.open(ctx, log, who)
	if err != nil {
		return err
	}
	defer closeAll(listeners) // for the failures below; else they are closed by then
	if err := who.assume(); err != nil {
		return err
	}
	q, err := openQueue(opt.journal, log)
	if err != nil {
		return err
	}
	spareProcessor()
	srv := server.New(q.broker, opt.server(log, q))

	signals.catchTermination()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go giveMemoryBack(ctx, q)
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { ended <- srv.Serve(l) }()
		log.Info("listening", "address", describe(l.Addr()))
	}
	log.Info("ready", "version", version(), "pid", os.Getpid(), "journal", q.where)
	notify(log, daemon.SdNotifyReady)
	failed := signals.wait(log, srv.Drain, ended)
	notify(log, daemon.SdNotifyStopping)
	stop(ctx, log, srv)
	return cmp.Or(failed, q.broker.Close())
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
