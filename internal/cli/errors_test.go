package cli

import (
	"bytes"
	"strings"
	"testing"
)

// For an error in the command line, the program prints one line with the error and a
// hint.
func TestWrongCommandLine(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		// Unknown options and arguments are errors.
		{"-x", `unknown shorthand flag: 'x' in -x (see: beanpole serve --help)`},
		{"--nonsense", `unknown flag: --nonsense `},
		{"nonsense -p 1", `unknown argument "nonsense" (see: beanpole --help)`},
		{"serv", `unknown argument "serv"; did you mean "serve"?`},
		{"serve extra", `unknown argument "extra"`},
		{"-", `unknown argument "-"`},
		{"-p 0 -- extra", `unknown argument "extra"`},
		{"version extra", `unknown argument "extra"`},
		{"help nonsense", `unknown argument "nonsense"`},
		// Options without a value are errors.
		{"-p", `flag needs an argument: 'p' in -p (see: beanpole serve --help)`},
		{"-VFz", `flag needs an argument: 'z' in -z`},
		// Numbers consist of decimal digits. A value can start with "-".
		{"-z 12x", `invalid argument "12x" for "-z, --max-job-size" flag: want bytes as a decimal number, or with a unit: `},
		{"-z ", `invalid argument "" for "-z, `},
		{"-z 99999999999999999999", `want bytes, at most 9223372036854775807`},
		{"-s 1_000", `invalid argument "1_000" for "-s, --segment-size"`},
		{"-f 50ms", `invalid argument "50ms" for "-f, --fsync-interval" flag: want milliseconds as a decimal number`},
		{"-p 65536", `invalid argument "65536" for "-p, --port" flag: want a port`},
		{"--max-connections 0", `invalid argument "0" for "--max-connections" flag: want at least 1`},
		{"--idle-timeout 30", `invalid argument "30" for "--idle-timeout" flag: want a time with its unit: 30s is seconds`},
		{"--compat 1.11", `invalid argument "1.11" for "--compat" flag: want 1.12 or 1.13`},
		{"--stall-timeout -1s", `invalid argument "-1s" for "--stall-timeout" flag: it must not be negative`},
		{"--unix-mode 0999", `invalid argument "0999" for "--unix-mode" flag: want permissions in octal`},
		{"--log-format xml", `invalid argument "xml" for "--log-format" flag: want text or json`},
		{"--verbose=loud", `invalid argument "loud" for "-V, --verbose"`},
		// Addresses must be complete.
		{"-l ", `invalid argument "" for "-l, --listen" flag: want IP, NAME`},
		{"-l ::1:11300", `invalid argument "::1:11300" for "-l, --listen" flag: want IP, NAME`},
		{"-l unix:", `invalid argument "unix:" for "-l, --listen" flag: a unix socket needs a path`},
		{"-l unix:0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890", `too long: 121 bytes`},
		{"--networks 10.0.0.0/99", `invalid argument "10.0.0.0/99" for "--networks" flag: "10.0.0.0/99" is not a network`},
		{"--admin x:y:z", `invalid argument "x:y:z" for "--admin"`},
		// Cluster commands check their arguments before they send a request.
		{"cluster remove DIR x", `"x" is not the id of a member (see: beanpole cluster status DIR)`},
		{"cluster init DIR", `--listen is required: the address at which other members reach this one`},
		{"cluster init DIR --listen nowhere", `--listen: `},
		{"cluster join DIR 10.0.0.1:11400 --listen 10.0.0.2:11400", `--join-token-file is required; create a token with 'beanpole cluster join-token DIR'`},
		{"cluster status --offline", `--offline requires a directory, not -a ADDR`},
		{"cluster status DIR -a :11300", `want one directory, or -a ADDR`},
		{"cluster recover DIR", `add --force-new-cluster`},
		{"--config ", `invalid argument "" for "--config" flag: want the path of a file`},
	} {
		args := strings.Split(c.args, " ") // a trailing blank precedes an empty argument
		var stdout, stderr bytes.Buffer
		code := Run("1.2.3", args, strings.NewReader(""), &stdout, &stderr)
		line, more, _ := strings.Cut(stderr.String(), "\n")
		if code != 5 || !strings.HasPrefix(line, "beanpole: ") || !strings.Contains(line, c.want) || more != "" || stdout.Len() > 0 {
			t.Errorf("%q: code %d, %q, %q; want %s", args, code, &stdout, &stderr, c.want)
		}
	}
}
