package conformance

import (
	"net"
	"testing"
)

// A Server can be started afresh for each transcript.
type Server interface {
	// Start returns a running server that has no jobs and no tubes but
	// default and accepts connections. The args are flags of beanstalkd
	// other than -l and -p, for example -z 10. The server is stopped by
	// tb.Cleanup; a start that fails ends the test with tb.Fatal.
	Start(tb testing.TB, args []string) Instance
}

// An Instance is one running server.
type Instance interface {
	// Dial connects to it. The connection must buffer as a socket does (64
	// KiB each way are plenty) and have a CloseWrite method for half-close.
	Dial() (net.Conn, error)

	// Drain does what SIGUSR1 does to beanstalkd: from now on it refuses
	// jobs.
	Drain() error
}

// A Dialect says which of the answers that are known to differ a server
// should give. All differences are listed here and in the transcripts that
// have a "differs:" or a "since" line; nothing else is normalised.
type Dialect struct {
	// Ours selects the lines marked "ours" instead of those marked "real".
	Ours bool

	// BareStrings: the strings in stats are not quoted, as was so before
	// 1.13, and as beanpole has it with --compat 1.12. The player quotes the values of name, tube, hostname, os and
	// platform before it compares.
	BareStrings bool

	// LooseTimeouts: reserve-with-timeout takes any argument for a number,
	// as was so before 1.13 (text is 0, a negative number waits for ever).
	// Transcripts with a line "since 1.13" are skipped.
	LooseTimeouts bool
}

// The dialects in use.
var (
	Beanpole      = Dialect{Ours: true}
	Beanstalkd113 = Dialect{}
	Beanstalkd112 = Dialect{BareStrings: true, LooseTimeouts: true} // Debian's
	Beanpole112   = Dialect{Ours: true, BareStrings: true, LooseTimeouts: true}
)

// quotedSince113 are the keys of the stats whose values got quotes in 1.13.
var quotedSince113 = map[string]bool{"name": true, "tube": true, "hostname": true, "os": true, "platform": true}

// value returns the value of a stats key as 1.13 writes it.
func (d Dialect) value(key, value string) string {
	if d.BareStrings && quotedSince113[key] {
		return `"` + value + `"`
	}
	return value
}

// plays tells whether a step is for this dialect.
func (d Dialect) plays(s side) bool {
	return s == both || (s == ours) == d.Ours
}
