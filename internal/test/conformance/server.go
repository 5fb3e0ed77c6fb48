package conformance

import (
	"net"
	"testing"
)

// A Server can be started for each transcript.
type Server interface {
	// Start returns a running server that has no jobs, has only the tube default, and
	// accepts connections. The args are flags of beanstalkd other than -l and -p, for
	// example -z 10. tb.Cleanup stops the server; a start that fails ends the test with
	// tb.Fatal.
	Start(tb testing.TB, args []string) Instance
}

// An Instance is one running server.
type Instance interface {
	// Dial connects to the server. The connection must have buffers like a socket (64 KiB
	// in each direction suffice) and a CloseWrite method for half-close.
	Dial() (net.Conn, error)

	// Drain has the effect of SIGUSR1 on beanstalkd: from now on the server refuses jobs.
	Drain() error
}

// A Dialect selects replies where servers are known to differ. All differences are listed
// here and in the transcripts that contain a "differs:" or a "since" line. The player
// normalizes nothing else.
type Dialect struct {
	// Ours selects the lines marked "ours" instead of those marked "real".
	Ours bool

	// BareStrings is set if the strings in stats are not quoted, as before 1.13 and with
	// --compat 1.12. The player quotes the values of name, tube, hostname, os and
	// platform before it compares.
	BareStrings bool

	// LooseTimeouts is set if reserve-with-timeout accepts any argument as a number, as
	// before 1.13 (text is 0, a negative number waits forever). Transcripts with a line
	// "since 1.13" are skipped.
	LooseTimeouts bool
}

// The dialects in use.
var (
	Beanpole      = Dialect{Ours: true}
	Beanstalkd113 = Dialect{}
	Beanstalkd112 = Dialect{BareStrings: true, LooseTimeouts: true} // Debian's
	Beanpole112   = Dialect{Ours: true, BareStrings: true, LooseTimeouts: true}
)

// quotedSince113 lists the keys of stats whose values have quotes since 1.13.
var quotedSince113 = map[string]bool{"name": true, "tube": true, "hostname": true, "os": true, "platform": true}

// value returns the value of a stats key in the form of 1.13.
func (d Dialect) value(key, value string) string {
	if d.BareStrings && quotedSince113[key] {
		return `"` + value + `"`
	}
	return value
}

// plays reports whether a step applies to this dialect.
func (d Dialect) plays(s side) bool {
	return s == both || (s == ours) == d.Ours
}
