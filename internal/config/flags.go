package config

import (
	"fmt"
	"math"

	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/duration"
	"github.com/beanpole-mq/beanpole/internal/server"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// Define adds the options to a set of flags, in groups.
func (opt *Options) Define(flags *pflag.FlagSet) {
	cliutil.AddFlags(flags, "Sockets", opt.defineSockets)
	cliutil.AddFlags(flags, "Security, of the addresses above (doc/security.md)", opt.defineSecurity)
	cliutil.AddFlags(flags, "Limits", opt.defineConnectionLimits)
	cliutil.AddFlags(flags, "Limits of the queue; 0: none (0)", opt.defineQueueLimits)
	cliutil.AddFlags(flags, "Journal", opt.defineJournal)
	cliutil.AddFlags(flags, "Admin pages: the console, /metrics, /healthz, /readyz, and the JSON API", opt.defineAdmin)
	cliutil.AddFlags(flags, "Log (on standard error) and others", opt.defineLog)
}

func (opt *Options) defineSockets(fs *pflag.FlagSet) {
	define(fs, "listen", "l", listOf(&opt.Listen, parseAddress), "listen on `ADDR`: IP, NAME, IP:PORT, [IPv6]:PORT,\n"+
		":PORT of every address, or unix:PATH; may be\n"+
		"repeated; a name means the first of its IPs that can\n"+
		"be bound, :: means IPv4 too (127.0.0.1, and ::1 if\n"+
		"there is IPv6)")
	define(fs, "port", "p", as(&opt.Port, parsePort, plainly), "`PORT`, number or service, of each ADDR without one;\n"+
		"0: any that is free (11300)")
	define(fs, "user", "u", as(&opt.User, parseUser, unlessEmpty), "become this `USER`, by name or number, and its\n"+
		"groups when the sockets are open")
	define(fs, "unix-mode", "", as(&opt.UnixMode, parseMode, showMode), "permissions of unix sockets, octal; with -u they\n"+
		"belong to USER (`0660`)")
}

func (opt *Options) defineSecurity(fs *pflag.FlagSet) {
	define(fs, "networks", "", listOf(&opt.Terms.Networks, parseNetwork), "serve clients from this `NETWORK` only, 10.0.0.0/8 or\n"+
		"an address; may be repeated (any)")
	define(fs, "proxy-protocol", "", listOf(&opt.Terms.Proxies, parseNetwork), "connections from this `NETWORK` are those of proxies,\n"+
		"and begin with the header of the PROXY protocol;\nmay be repeated (none)")
	define(fs, "tls-cert", "", as(&opt.Terms.TLS.Cert, parseFile, unlessEmpty), "encrypt with the certificate in `FILE`, PEM")
	define(fs, "tls-key", "", as(&opt.Terms.TLS.Key, parseFile, unlessEmpty), "its key, in `FILE`")
	define(fs, "tls-client-ca", "", as(&opt.Terms.TLS.ClientCA, parseFile, unlessEmpty), "clients need a certificate of an authority in `FILE`")
	define(fs, "require-auth", "", onOff(&opt.Terms.Required), "clients must prove who they are")
	define(fs, "token-in-put", "", onOff(&opt.Terms.TokenInPut), "the body of the first put may be the token")
}

func (opt *Options) defineConnectionLimits(fs *pflag.FlagSet) {
	define(fs, "max-job-size", "z", as(&opt.MaxJobSize, parseBytes, plainly), "largest body of a job, in `BYTES` or with a unit\n"+
		"(100kB, 1MiB), at most 1073741824 (65535)")
	define(fs, "max-connections", "", as(&opt.Server.MaxConns, cliutil.ParseCount("connections"), plainly),
		fmt.Sprintf("let clients wait beyond these `N` connections (%d)", server.DefaultMaxConns))
	define(fs, "max-connections-per-address", "", as(&opt.Server.Limits.ConnectionsPerAddress, parseLimit("connections"), plainly),
		"close connections of an address beyond these `N`;\n0: any number (0)")
	define(fs, "max-buffers", "", as(&opt.Server.MaxBuffers, parseBytes, plainly), "close the connection that holds most when input and\n"+
		"replies of all take these `BYTES`; 0: never (536870912)")
	define(fs, "idle-timeout", "", as(&opt.Server.IdleTimeout, duration.Parse, showDuration), "close a connection that has sent nothing for this\n"+
		"`TIME`, such as 5m, unless it waits for a job or\n"+
		"holds one; 0: never (0)")
	define(fs, "stall-timeout", "", as(&opt.Server.StallTimeout, duration.Parse, showDuration), "close a connection that stops in the middle of a\n"+
		"command, or does not read its replies, for this\n"+
		"`TIME`; 0: never (1m)")
}

func (opt *Options) defineQueueLimits(fs *pflag.FlagSet) {
	define(fs, "max-memory", "", as(&opt.Queue.Memory, parseBytes, plainly), "refuse new jobs, OUT_OF_MEMORY, when all jobs and\n"+
		"tubes take these `BYTES` of memory")
	define(fs, "max-tubes", "", as(&opt.Queue.Tubes, parseLimit("tubes"), plainly), "refuse new tubes beyond these `N`")
	define(fs, "max-watched", "", as(&opt.Queue.Watches, parseLimit("tubes"), plainly), "let a connection watch `N` tubes")
}

func (opt *Options) defineJournal(fs *pflag.FlagSet) {
	define(fs, "journal", "b", as(&opt.Journal.Dir, parseDir, unlessEmpty), "keep the jobs in `DIR`, which must exist; files of\n"+
		"beanstalkd in it are taken over (in memory only)")
	define(fs, "fsync-interval", "f", as(&opt.Journal.Fsync, parseMillis, showFsync), "sync at most once in `MS` milliseconds, after the\n"+
		"reply; 0: before each reply (0)")
	define(fs, "no-fsync", "F", &setting{set: opt.setNoFsync, value: opt.showNoFsync, isSwitch: true},
		"never sync: the system decides when to write")
	define(fs, "segment-size", "s", as(&opt.Journal.asked, parseBytes, plainly), "size of a file of the journal, in `BYTES`, 512 to\n"+
		"1073741824 (10485760)")
	define(fs, "cluster", "", onOff(&opt.Journal.Member), "start only if DIR is that of a member of a cluster:\n"+
		"one that is lost, or not mounted, is not taken for that\n"+
		"of a single server")
	define(fs, "cluster-fast-failover", "", onOff(&opt.Journal.FastFailover), "in a cluster, elect another leader at once where the\n"+
		"leader's machine refuses connections; =false where a\n"+
		"proxy or a firewall may refuse in its place (true)")
}

func (opt *Options) defineAdmin(fs *pflag.FlagSet) {
	define(fs, "admin", "", as(&opt.Admin.Addr, parseAddress, unlessEmpty), "serve them on `ADDR` too: IP:PORT, :PORT of\n"+
		"every address, or unix:PATH (default none)")
	define(fs, "admin-socket", "", as(&opt.Admin.Socket, text("a path, or none"), unlessEmpty), "serve them to this machine on the Unix socket `PATH`;\n"+
		"none turns it off (default the first that can be\n"+
		"created of /run/beanpole/PORT.sock,\n"+
		"$XDG_RUNTIME_DIR/beanpole-PORT.sock and\n"+
		"DIR/admin.sock)")
	define(fs, "admin-host", "", listOf(&opt.Admin.Hosts, text("a host name")), "accept the host `NAME` in requests from a proxy on\n"+
		"this machine; can be repeated")
	define(fs, "metrics-tubes", "", as(&opt.Admin.Tubes, parseLimit("tubes"), plainly), fmt.Sprintf("give `N` tubes metrics of their own, those that\nmatter most (%d)", admin.DefaultTubes))
	define(fs, "console", "", onOff(&opt.Admin.Console), "serve the console at /console/ too; --console=false:\nno (true)")
	define(fs, "console-read-only", "", onOff(&opt.Admin.ConsoleReadOnly), "let the console change nothing")
	define(fs, "admin-profiles", "", onOff(&opt.Admin.Profiles), "add /debug/pprof/")
}

func (opt *Options) defineLog(fs *pflag.FlagSet) {
	define(fs, "verbose", "V", &setting{set: opt.addVerbose, value: func() any { return opt.Verbose }, isSwitch: true},
		"log connections too; -VV: and each command")
	define(fs, "compat", "", as(&opt.Server.Compat, wire.ParseCompat, showCompat), "speak as beanstalkd `VERSION`, 1.12 or 1.13: before\n"+
		"1.13 strings in statistics have no quotes (1.13)")
	define(fs, "log-format", "", as(&opt.jsonLog, parseLogFormat, showLogFormat), "`FORMAT` of the log: text or json (text)")
	define(fs, "slow-turn", "", as(&opt.Slow.Turn, duration.Parse, showDuration), "log a turn, in which commands are executed, that takes\n"+
		"this `TIME`; 0: never (50ms)")
	define(fs, "slow-sync", "", as(&opt.Slow.Sync, duration.Parse, showDuration), "log a sync of the journal that takes this `TIME`;\n"+
		"0: never (1s)")
	define(fs, fileFlag, "", as(&opt.File, parseFile, unlessEmpty), "read settings from `FILE` too, TOML with the long\n"+
		"names of these options (none)")
	fs.BoolVarP(&opt.Version, "version", "v", false, "print the version and exit")
	fs.BoolP("help", "h", false, "print this help")
	fs.BoolVarP(&opt.compact, "c", "c", opt.compact, "")
	fs.BoolVarP(&opt.noCompact, "n", "n", opt.noCompact, "")
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

func (opt *Options) showNoFsync() any { return opt.Journal.Fsync == neverSync }

// addVerbose implements -V, whose value is "true" or a level.
func (opt *Options) addVerbose(s string) error {
	if s == "true" {
		opt.Verbose++
		return nil
	}
	n, err := cliutil.ParseNumber(s, "a level", math.MaxInt32)
	opt.Verbose = int(n)
	return err
}
