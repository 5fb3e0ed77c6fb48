package config

import (
	"fmt"
	"math"

	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/admin"
	"github.com/beanpole-mq/beanpole/internal/duration"
	"github.com/beanpole-mq/beanpole/internal/flags"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Define adds the options to a set of flags, in groups.
func (opt *Options) Define(set *pflag.FlagSet) {
	flags.AddGroup(set, "Sockets", opt.defineSockets)
	flags.AddGroup(set, "Socket security", opt.defineSecurity)
	flags.AddGroup(set, "Limits", opt.defineConnectionLimits)
	flags.AddGroup(set, "Queue limits", opt.defineQueueLimits)
	flags.AddGroup(set, "Journal", opt.defineJournal)
	flags.AddGroup(set, "Admin API, console, metrics and health checks", opt.defineAdmin)
	flags.AddGroup(set, "Log and others", opt.defineLog)
}

func (opt *Options) defineSockets(fs *pflag.FlagSet) {
	define(fs, "listen", "l", listOf(&opt.Listen, parseAddress), "listen on `ADDR`: IP, NAME, IP:PORT, [IPv6]:PORT, :PORT\n"+
		"or unix:PATH; repeatable (default 127.0.0.1 and ::1)")
	define(fs, "port", "p", as(&opt.Port, parsePort), "default `PORT` of listen addresses; 0 picks a free port\n"+
		"(default 11300)")
	define(fs, "user", "u", as(&opt.User, parseUser), "switch to `USER`, a name or number, after opening the\n"+
		"sockets")
	define(fs, "unix-mode", "", as(&opt.UnixMode, parseMode), "octal permissions `MODE` of Unix sockets, which belong to\n"+
		"the user of -u (default 0660)")
}

func (opt *Options) defineSecurity(fs *pflag.FlagSet) {
	define(fs, "networks", "", listOf(&opt.Terms.Networks, parseNetwork), "accept clients from `NETWORK` only, an address or a\n"+
		"prefix such as 10.0.0.0/8; repeatable (default any)")
	define(fs, "proxy-protocol", "", listOf(&opt.Terms.Proxies, parseNetwork), "expect a PROXY protocol header on connections\n"+
		"from `NETWORK`; repeatable (default none)")
	define(fs, "tls-cert", "", as(&opt.Terms.TLS.Cert, parseFile), "encrypt with the certificate in `FILE`, in PEM")
	define(fs, "tls-key", "", as(&opt.Terms.TLS.Key, parseFile), "read the key of the certificate from `FILE`")
	define(fs, "tls-client-ca", "", as(&opt.Terms.TLS.ClientCA, parseFile), "require client certificates of an authority in `FILE`")
	define(fs, "require-auth", "", onOff(&opt.Terms.Required), "require every client to authenticate")
	define(fs, "token-in-put", "", onOff(&opt.Terms.TokenInPut), "accept the body of the first put as the token")
}

func (opt *Options) defineConnectionLimits(fs *pflag.FlagSet) {
	define(fs, "max-job-size", "z", as(&opt.MaxJobSize, parseBytes), "maximum `SIZE` of a job body, such as 100kB or 1MiB, up\n"+
		"to 1GiB (default 65535)")
	define(fs, "max-connections", "", as(&opt.Server.MaxConns, flags.Count("connections")),
		fmt.Sprintf("maximum number `N` of connections; new clients wait until\nanother disconnects (default %d)", server.DefaultMaxConns))
	define(fs, "max-connections-per-address", "", as(&opt.Server.ConnectionsPerAddress, parseLimit("connections")), "maximum number `N` of connections per client address;\n"+
		"further connections are closed (default unlimited)")
	define(fs, "max-buffers", "", as(&opt.Server.MaxBuffers, parseBytes), "maximum total `SIZE` of input and replies in memory;\n"+
		"above it, the connection that uses the most is closed; 0\n"+
		"is unlimited (default 512MiB)")
	define(fs, "idle-timeout", "", as(&opt.Server.IdleTimeout, duration.Parse), "close connections that send nothing for this `TIME`, such\n"+
		"as 5m, unless they wait for a job or hold one (default\n"+
		"never)")
	define(fs, "stall-timeout", "", as(&opt.Server.StallTimeout, duration.Parse), "close connections that stop in the middle of a command or\n"+
		"do not read their replies for this `TIME`; 0 disables\n"+
		"(default 1m)")
}

func (opt *Options) defineQueueLimits(fs *pflag.FlagSet) {
	define(fs, "max-memory", "", as(&opt.Queue.Memory, parseBytes), "maximum `SIZE` of memory for jobs and tubes; above it,\n"+
		"puts are refused with OUT_OF_MEMORY (default unlimited)")
	define(fs, "max-tubes", "", as(&opt.Queue.Tubes, parseLimit("tubes")), "maximum number `N` of tubes (default unlimited)")
	define(fs, "max-watched", "", as(&opt.Queue.Watches, parseLimit("tubes")), "maximum number `N` of tubes that a connection watches\n"+
		"(default unlimited)")
}

func (opt *Options) defineJournal(fs *pflag.FlagSet) {
	define(fs, "journal", "b", as(&opt.Journal.Dir, parseDir), "store jobs in `DIR`, which must exist;\n"+
		"beanstalkd files in it are imported (default memory only)")
	define(fs, "fsync-interval", "f", &setting{set: flags.Into(&opt.Journal.Fsync, parseMillis), value: opt.showFsync}, "sync at most every `MS` milliseconds, after the reply; 0\n"+
		"syncs before each reply (default 0)")
	define(fs, "no-fsync", "F", &setting{set: opt.setNoFsync, value: opt.showNoFsync, isSwitch: true}, "never sync; the operating system decides when to write")
	define(fs, "segment-size", "s", as(&opt.Journal.asked, parseBytes), "`SIZE` of a journal file, 512 bytes to 1GiB (default\n"+
		"10485760)")
	define(fs, "history", "", as(&opt.Journal.History, parseBytes), "maximum `SIZE` of the history of charts and changes, in\n"+
		"memory and in DIR/history; 0 disables (default 32MiB)")
	define(fs, "cluster", "", onOff(&opt.Journal.Member), "require DIR to belong to a member of a cluster, so that a\n"+
		"lost or unmounted DIR is not served as an empty queue")
	define(fs, "cluster-fast-failover", "", onOff(&opt.Journal.FastFailover), "elect another leader at once if the leader's machine\n"+
		"refuses connections; turn it off behind a proxy or\n"+
		"firewall that can refuse connections (default true)")
}

func (opt *Options) defineAdmin(fs *pflag.FlagSet) {
	define(fs, "admin", "", as(&opt.Admin.Addr, parseAddress), "also serve them on `ADDR`: IP:PORT, :PORT or unix:PATH\n"+
		"(default none)")
	define(fs, "admin-socket", "", as(&opt.Admin.Socket, text("a path, or none")), "serve them to this machine on the Unix socket `PATH`;\n"+
		"none disables (default the first that the server can\n"+
		"create of /run/beanpole/PORT.sock,\n"+
		"$XDG_RUNTIME_DIR/beanpole-PORT.sock and DIR/admin.sock)")
	define(fs, "admin-host", "", listOf(&opt.Admin.Hosts, text("a host name")), "accept the host `NAME` in requests from a proxy on this\n"+
		"machine; repeatable")
	define(fs, "metrics-tubes", "", as(&opt.Admin.Tubes, parseLimit("tubes")), fmt.Sprintf("number `N` of tubes with their own metrics (default %d)", admin.DefaultTubes))
	define(fs, "console", "", onOff(&opt.Admin.Console), "serve the console at /console/ (default true)")
	define(fs, "console-read-only", "", onOff(&opt.Admin.ConsoleReadOnly), "disable changes in the console")
	define(fs, "admin-profiles", "", onOff(&opt.Admin.Profiles), "serve profiles at /debug/pprof/")
}

func (opt *Options) defineLog(fs *pflag.FlagSet) {
	define(fs, "verbose", "V", &setting{set: opt.addVerbose, value: func() any { return opt.Verbose }, isSwitch: true}, "log connections; -VV also logs commands")
	define(fs, "compat", "", as(&opt.Server.Compat, wire.ParseCompat), "speak the protocol of beanstalkd `VERSION` 1.12 or 1.13;\n"+
		"1.12 does not quote strings in statistics (default 1.13)")
	define(fs, "log-format", "", as(&opt.logFormat, parseLogFormat), "`FORMAT` of the log: text or json (default text)")
	define(fs, "slow-turn", "", as(&opt.Slow.Turn, duration.Parse), "log turns (batches of commands) that take at least `TIME`;\n"+
		"0 disables (default 50ms)")
	define(fs, "slow-sync", "", as(&opt.Slow.Sync, duration.Parse), "log syncs of the journal that take this `TIME`; 0\n"+
		"disables (default 1s)")
	define(fs, fileFlag, "", as(&opt.File, parseFile), "also read settings from the TOML file `FILE`, named like\n"+
		"these options (default none)")
	fs.BoolVarP(&opt.Version, "version", "v", false, "print the version and exit")
	fs.BoolP("help", "h", false, "print this help")
	fs.BoolVarP(&opt.compaction, "c", "c", opt.compaction, "")
	fs.BoolVarP(&opt.compaction, "n", "n", opt.compaction, "")
	fs.Lookup("c").Hidden, fs.Lookup("n").Hidden = true, true
}

// setNoFsync implements -F. The later of -F and -f counts.
func (opt *Options) setNoFsync(s string) error {
	never, err := parseSwitch(s)
	if never {
		opt.Journal.Fsync = neverSync
	}
	return err
}

// showFsync returns milliseconds. With -F, there is no value.
func (opt *Options) showFsync() any {
	if opt.Journal.Fsync == neverSync {
		return nil
	}
	return opt.Journal.Fsync.Milliseconds()
}

func (opt *Options) showNoFsync() any { return opt.Journal.Fsync == neverSync }

// addVerbose implements -V, whose value is "true" or a level.
func (opt *Options) addVerbose(s string) error {
	if s == "true" {
		opt.Verbose++
		return nil
	}
	n, err := flags.Number(s, "a level", math.MaxInt32)
	opt.Verbose = int(n)
	return err
}
