package conformance

import (
	"net"
	"testing"
)

// A Server can be started for each transcript.
type Server interface {
	// Start returns a running server that has no jobs, has only the tube default, and
	// accepts connections. args contains flags of beanstalkd other than -l and -p, for
	// example -z 10. Start must stop the server with tb.Cleanup, and call tb.Fatal if the
	// start fails.
	Start(tb testing.TB, args []string) Instance
}

// An Instance is one running server.
type Instance interface {
	// Dial connects to the server. The connection must have buffers like a socket's, of
	// at least 64 KiB in each direction, and a CloseWrite method that half-closes it.
	Dial() (net.Conn, error)

	// Drain has the effect of SIGUSR1 on beanstalkd: from now on, the server rejects new
	// jobs.
	Drain() error
}

// A Dialect selects the replies in which servers are known to differ. All differences are
// listed here, or in transcripts with a "differs:" or a "since" line. The player
// normalizes no other differences.
type Dialect struct {
	// Ours selects the lines marked "ours" instead of those marked "real".
	Ours bool

	// V112 is set for beanstalkd 1.12 and --compat 1.12. The strings in stats have no
	// quotes: the player quotes the values of name, tube, hostname, os and platform before
	// it compares. reserve-with-timeout accepts any argument as a number (text is 0, a
	// negative number waits forever): transcripts with a line "since 1.13" are skipped.
	V112 bool
}

// The dialects in use.
var (
	Beanpole      = Dialect{Ours: true}
	Beanstalkd113 = Dialect{}
	Beanstalkd112 = Dialect{V112: true} // Debian's version
	Beanpole112   = Dialect{Ours: true, V112: true}
)

// quotedSince113 lists the keys of stats whose values have quotes since 1.13.
var quotedSince113 = map[string]bool{"name": true, "tube": true, "hostname": true, "os": true, "platform": true}

// value returns the value of a stats key in the form of 1.13.
func (d Dialect) value(key, value string) string {
	if d.V112 && quotedSince113[key] {
		return `"` + value + `"`
	}
	return value
}

// plays reports whether a step applies to this dialect.
func (d Dialect) plays(s side) bool {
	return s == both || (s == ours) == d.Ours
}
