package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/admin"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/wal"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// serveOptions are what the command line, the environment and the configuration
// file say.
type serveOptions struct {
	config string // the configuration file; empty: none

	listen   []string // as given; parsed when the port is known
	port     string
	unixMode fs.FileMode
	user     string
	guard    guardOptions // of the listeners that listen says
	tables   tables       // of the configuration file

	maxJobSize   uint64
	maxConns     int
	idleTimeout  time.Duration // 0: never
	stallTimeout time.Duration // 0: never
	compat       wire.Compat

	limit   limitOptions
	journal journalOptions
	admin   adminOptions

	verbose int
	jsonLog bool
	slow    slowOptions
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

func defaultOptions() serveOptions {
	return serveOptions{
		port:         server.DefaultPort,
		unixMode:     server.DefaultUnixMode,
		maxJobSize:   server.DefaultMaxJobSize,
		maxConns:     server.DefaultMaxConns,
		stallTimeout: server.DefaultStallTimeout,
		journal:      journalOptions{asked: wal.DefaultSegmentSize},
		admin:        adminOptions{tubes: admin.DefaultTubes},
		slow:         slowOptions{turn: 50 * time.Millisecond, sync: time.Second},
	}
}

func (opt *serveOptions) define(cmd *cobra.Command) {
	addFlags(cmd, "Sockets", func(fs *pflag.FlagSet) {
		define(fs, "listen", "l", &setting{set: opt.addListen, value: opt.showListen}, "listen on `ADDR`: IP, NAME, IP:PORT, [IPv6]:PORT,\n"+
			":PORT or unix:PATH; may be repeated; a name means\n"+
			"the first of its IPs that can be bound, :: means\n"+
			"IPv4 too (127.0.0.1)")
		fs.Lookup("listen").Annotations = map[string][]string{repeatsKey: nil}
		define(fs, "port", "p", as(&opt.port, parsePort, plainly), "`PORT`, number or service, of each ADDR without one;\n"+
			"0: any that is free (11300)")
		define(fs, "user", "u", as(&opt.user, parseUser, unlessEmpty), "become this `USER`, by name or number, and its\n"+
			"groups when the sockets are open")
		define(fs, "unix-mode", "", as(&opt.unixMode, parseMode, showMode), "permissions of unix sockets, octal; with -u they\n"+
			"belong to USER (`0660`)")
	})
	addFlags(cmd, "Security, of the addresses above (doc/security.md)", func(fs *pflag.FlagSet) {
		define(fs, "networks", "", &setting{set: opt.addNetwork, value: opt.showNetworks}, "serve clients from this `NETWORK` only, 10.0.0.0/8 or\n"+
			"an address; may be repeated (any)")
		fs.Lookup("networks").Annotations = map[string][]string{repeatsKey: nil}
		define(fs, "tls-cert", "", as(&opt.guard.tls.Cert, parseFile, unlessEmpty), "encrypt with the certificate in `FILE`, PEM")
		define(fs, "tls-key", "", as(&opt.guard.tls.Key, parseFile, unlessEmpty), "its key, in `FILE`")
		define(fs, "tls-client-ca", "", as(&opt.guard.tls.ClientCA, parseFile, unlessEmpty), "clients need a certificate of an authority in `FILE`")
		define(fs, "require-auth", "", onOff(&opt.guard.auth), "clients must prove who they are")
		define(fs, "token-in-put", "", onOff(&opt.guard.tokenInPut), "the body of the first put may be the token")
	})
	addFlags(cmd, "Limits", func(fs *pflag.FlagSet) {
		define(fs, "max-job-size", "z", as(&opt.maxJobSize, parseBytes, plainly), "largest body of a job, in `BYTES`, at most\n"+
			"1073741824 (65535)")
		define(fs, "max-connections", "", as(&opt.maxConns, counting("connections"), plainly),
			fmt.Sprintf("close connections beyond these `N` (%d)", server.DefaultMaxConns))
		define(fs, "max-connections-per-address", "", as(&opt.limit.ofAddress, parseLimit("connections"), plainly),
			"close connections of an address beyond these `N`;\n0: any number (0)")
		define(fs, "max-commands-per-second", "", as(&opt.limit.commands, parseLimit("commands"), plainly),
			"let an identity, or an address of clients without\none, give `N` commands a second; what is beyond\nwaits; 0: any number (0)")
		define(fs, "idle-timeout", "", as(&opt.idleTimeout, parseDuration, showDuration), "close a connection that has sent nothing for this\n"+
			"`TIME`, such as 5m, unless it waits for a job;\n"+
			"0: never (0)")
		define(fs, "stall-timeout", "", as(&opt.stallTimeout, parseDuration, showDuration), "close a connection that stops in the middle of a\n"+
			"command, or does not read its replies, for this\n"+
			"`TIME`; 0: never (1m)")
	})
	addFlags(cmd, "Limits of the queue; 0: none (0)", func(fs *pflag.FlagSet) {
		define(fs, "max-memory", "", as(&opt.limit.memory, parseBytes, plainly), "refuse new jobs, OUT_OF_MEMORY, when all jobs take\n"+
			"these `BYTES` of memory")
		define(fs, "max-tubes", "", as(&opt.limit.tubes, parseLimit("tubes"), plainly), "refuse new tubes beyond these `N`")
		define(fs, "max-watched", "", as(&opt.limit.watches, parseLimit("tubes"), plainly), "let a connection watch `N` tubes")
	})
	addFlags(cmd, "Journal", func(fs *pflag.FlagSet) {
		define(fs, "journal", "b", as(&opt.journal.dir, parseDir, unlessEmpty), "keep the jobs in `DIR`, which must exist; files of\n"+
			"beanstalkd in it are taken over (in memory only)")
		define(fs, "fsync-interval", "f", as(&opt.journal.fsync, parseMillis, showFsync), "sync at most once in `MS` milliseconds, after the\n"+
			"reply; 0: before each reply (0)")
		define(fs, "no-fsync", "F", &setting{set: opt.setNoFsync, value: opt.showNoFsync, isSwitch: true},
			"never sync: the system decides when to write")
		define(fs, "segment-size", "s", as(&opt.journal.asked, parseBytes, plainly), "size of a file of the journal, in `BYTES`, 512 to\n"+
			"1073741824 (10485760)")
	})
	addFlags(cmd, "Admin pages: /metrics, /healthz, /readyz, and the JSON API", func(fs *pflag.FlagSet) {
		define(fs, "admin", "", as(&opt.admin.addr, parseAdmin, unlessEmpty), "serve them on `ADDR`: IP:PORT, :PORT of loopback,\n"+
			"or unix:PATH (none)")
		define(fs, "metrics-tubes", "", as(&opt.admin.tubes, parseLimit("tubes"), plainly), fmt.Sprintf("give the first `N` tubes metrics of their own (%d)", admin.DefaultTubes))
		define(fs, "admin-profiles", "", onOff(&opt.admin.profiles), "add /debug/pprof/")
	})
	addFlags(cmd, "Log (on standard error) and others", func(fs *pflag.FlagSet) {
		define(fs, "verbose", "V", &setting{set: opt.addVerbose, value: func() any { return opt.verbose }, isSwitch: true},
			"log connections too; -VV: and each command")
		define(fs, "compat", "", as(&opt.compat, wire.ParseCompat, showCompat), "speak as beanstalkd `VERSION`, 1.12 or 1.13: before\n"+
			"1.13 strings in statistics have no quotes (1.13)")
		define(fs, "log-format", "", as(&opt.jsonLog, parseLogFormat, showLogFormat), "`FORMAT` of the log: text or json (text)")
		define(fs, "slow-turn", "", as(&opt.slow.turn, parseDuration, showDuration), "log a turn, in which commands are executed, that takes\n"+
			"this `TIME`; 0: never (50ms)")
		define(fs, "slow-sync", "", as(&opt.slow.sync, parseDuration, showDuration), "log a sync of the journal that takes this `TIME`;\n"+
			"0: never (1s)")
		define(fs, configFlag, "", as(&opt.config, parseFile, unlessEmpty), "read settings from `FILE` too, TOML with the long\n"+
			"names of these options (none)")
		fs.BoolVarP(&opt.version, "version", "v", false, "print the version and exit")
		fs.BoolP("help", "h", false, "print this help and exit")
		fs.BoolVarP(&opt.compact, "c", "c", opt.compact, "")
		fs.BoolVarP(&opt.noCompact, "n", "n", opt.noCompact, "")
		fs.Lookup("c").Hidden, fs.Lookup("n").Hidden = true, true
	})
}

func (opt *serveOptions) addListen(s string) error {
	_, err := server.ParseAddress(s, server.DefaultPort)
	opt.listen = append(opt.listen, s)
	return err
}

// showListen returns the addresses as -l takes them.
func (opt *serveOptions) showListen() any {
	if len(opt.listen) == 0 {
		return []string{server.DefaultHost}
	}
	return opt.listen
}

// setNoFsync is -F. A later -f overrides it, and it an earlier -f.
func (opt *serveOptions) setNoFsync(s string) error {
	never, err := parseSwitch(s)
	if never {
		opt.journal.fsync = fsyncNever
	}
	return err
}

func (opt *serveOptions) addNetwork(s string) error {
	n, err := parseNetwork(s)
	opt.guard.networks = append(opt.guard.networks, n)
	return err
}

func (opt *serveOptions) showNetworks() any {
	if len(opt.guard.networks) == 0 {
		return nil
	}
	var texts []string
	for _, n := range opt.guard.networks {
		texts = append(texts, n.String())
	}
	return texts
}

func (opt *serveOptions) showNoFsync() any { return opt.journal.fsync == fsyncNever }

// showFsync returns milliseconds, or nothing with -F.
func showFsync(d time.Duration) any {
	if d == fsyncNever {
		return nil
	}
	return d.Milliseconds()
}

// unlessEmpty is for settings that are not shown when they are empty.
func unlessEmpty(s string) any {
	if s == "" {
		return nil
	}
	return s
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

func parseFile(s string) (string, error) {
	if s == "" {
		return "", errors.New("want the path of a file")
	}
	return s, nil
}

// parseLimit returns a function that reads a number from 0 on.
func parseLimit(what string) func(string) (int, error) {
	return func(s string) (int, error) {
		n, err := parseNumber(s, what, math.MaxInt32)
		return int(n), err
	}
}

func parseAdmin(s string) (string, error) {
	_, err := server.ParseAddress(withHost(s), defaultAdminPort)
	return s, err
}

func showLogFormat(json bool) any {
	if json {
		return "json"
	}
	return "text"
}

func parseLogFormat(s string) (json bool, err error) {
	if s != "text" && s != "json" {
		return false, errors.New("want text or json")
	}
	return s == "json", nil
}

// An endpoint is where to listen, and what is asked of clients there.
type endpoint struct {
	server.Address
	guard guardOptions
}

// endpoints are where to listen, now that all options are known: the addresses of
// listen, and the listeners of the configuration file.
func (opt *serveOptions) endpoints() ([]endpoint, error) {
	if err := opt.guard.check(); err != nil {
		return nil, err
	}
	listen := opt.listen
	if len(listen) == 0 && len(opt.tables.Listeners) == 0 {
		listen = []string{server.DefaultHost}
	}
	var endpoints []endpoint
	for _, s := range listen {
		a, err := server.ParseAddress(s, opt.port)
		if err != nil {
			return nil, err
		}
		endpoints = append(endpoints, endpoint{a, opt.guard})
	}
	for i, t := range opt.tables.Listeners {
		e, err := t.endpoint(opt.port)
		if err != nil {
			return nil, fmt.Errorf("%s: listener %d: %w", opt.config, i+1, err)
		}
		endpoints = append(endpoints, e)
	}
	return endpoints, nil
}

// logger returns what the options ask for, and its level, which can be changed.
func (opt *serveOptions) logger(w io.Writer) (*slog.Logger, *slog.LevelVar) {
	level := &slog.LevelVar{}
	level.Set(opt.level())
	h := &slog.HandlerOptions{Level: level}
	if opt.jsonLog {
		return slog.New(slog.NewJSONHandler(w, h)), level
	}
	return slog.New(slog.NewTextHandler(w, h)), level
}

// level is info, with -V debug.
func (opt *serveOptions) level() slog.Level {
	if opt.verbose > 0 {
		return slog.LevelDebug
	}
	return slog.LevelInfo
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
		MaxConns:     fitConnections(opt.maxConns, opt.ownDescriptors(), log),
		Limits:       opt.clientLimits(),
		IdleTimeout:  opt.idleTimeout,
		StallTimeout: opt.stallTimeout,
		Compat:       opt.compat,
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
