package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

func read(t *testing.T, args ...string) (*Settings, error) {
	t.Helper()
	opt := Default()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	opt.Define(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return NewCommandLine(opt, flags).Read()
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "beanpole.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The command line overrides the environment, and the environment overrides the file.
// Values from several sources are not merged.
func TestSources(t *testing.T) {
	t.Setenv("BEANPOLE_PORT", "tcp://10.0.0.1:11300") // as Kubernetes sets it for a service
	t.Setenv("BEANPOLE_LISTEN", "10.0.0.1,10.0.0.2")
	t.Setenv("BEANPOLE_PORT_11300_TCP_ADDR", "10.0.0.1")
	t.Setenv("BEANPOLE_ADMIN_PORT", "tcp://10.0.0.1:11380") // like BEANPOLE_ADMIN_HOST
	t.Setenv("BEANPOLE_MAX_TUBES", "nonsense!")             // the command line takes precedence
	t.Setenv("BEANPOLE_CONFIG", file(t, `
port = 12000
listen = ["10.0.0.9"]
max-tubes = 3
max-watched = 3
idle-timeout = "5m"
require-auth = true
`))
	s, err := read(t, "--max-tubes", "1", "-VV")
	if err != nil {
		t.Fatal(err)
	}
	opt := s.Options
	limits, err := opt.QueueLimits()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"10.0.0.1", "10.0.0.2"}, opt.Listen); diff != "" {
		t.Errorf("listen (-want +got):\n%s", diff)
	}
	if opt.Port != "12000" || limits.Tubes != 1 || limits.Watches != 3 || opt.Server.IdleTimeout != 5*time.Minute || !opt.Terms.Required || opt.Verbose != 2 {
		t.Errorf("port %s, limits %+v, idle timeout %v, auth %v, verbose %d", opt.Port, limits, opt.Server.IdleTimeout, opt.Terms.Required, opt.Verbose)
	}
}

// A setting also overrides excluded settings from sources with lower precedence.
func TestOverrides(t *testing.T) {
	path := file(t, "fsync-interval = 50")
	for _, c := range []struct {
		args []string
		want time.Duration
	}{
		{nil, 50 * time.Millisecond},
		{[]string{"-F"}, neverSync},
		{[]string{"-F", "-f", "20"}, 20 * time.Millisecond},
		{[]string{"-f", "20", "-F"}, neverSync},
	} {
		s, err := read(t, append(c.args, "--config", path)...)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Options.Journal.Fsync; got != c.want {
			t.Errorf("%q: %v, want %v", c.args, got, c.want)
		}
	}
}

// Settings that change between two readings are reported, for all sources.
func TestChanged(t *testing.T) {
	path := file(t, "max-tubes = 3\nport = 12000")
	before, err := read(t, "--config", path)
	if err != nil {
		t.Fatal(err)
	}
	after, err := read(t, "--config", path, "--max-tubes", "3", "-p", "13000", "--tls-key", "key.pem")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"port", "tls-key"}, after.Changed(before)); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
}

// Errors in the file contain its name, and have the exit code of a command-line error.
func TestFileErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"port = ", "line 1"},
		{"prot = 1", `unknown setting "prot"`},
		{"config = 'x'", `unknown setting "config"`},
		{"port = [1, 2]", "port must be one value, not a list"},
		{"max-tubes = 1.5", "want a string, a whole number, true or false"},
		{"max-tubes = -1", `bad value "-1" for max-tubes`},
		{"no-fsync = true\nfsync-interval = 5", "cannot be used together"},
		{"max-conections = 3", `unknown setting "max-conections"; did you mean "max-connections"?`},
		{"max-job-size = '12x'", `bad value "12x" for max-job-size in`},
		{"[[limit]]\ntubes = ['a']", "limit 1: want jobs or bytes"},
		{"[[identity]]\nname = 'a'\ntokens = ['secret']", `identity "a": invalid token hash`},
		{"[[listener]]\nrequire-auth = true", "listener 1: want IP, NAME"},
		{"[[rule]]\nallows = ['put']", `unknown setting "allows" in [[rule]]`},
		{"[[rule]]\nidentities = ['*']\nallow = ['fly']", "rule 1"},
		{"[[rule]]\nidentities = ['who']\ntubes = ['*']\nallow = ['put']", `unknown identity "who"`},
		{"[[rule]]\nidentities = ['*']\nallow = ['put']", `rule 1: no tubes; use "*" for every tube`},
		{"[[limit]]\njobs = 1", `limit 1: no tubes; use "*" for every tube`},
		{"[[identity]]\nname = 'x'\nnetworks = ['10.0.0.0/99']", "is not a network"},
		{"[[identity]]\nname = 'x'\nunix-users = [-1]", "want the name or the number of a user"},
		{"[[limit]]\ntubes = ['*']\njobs = -1", "limit 1: want jobs or bytes"},
		{"[[limit]]\ntubes = ['*']\njobs = 'five'", `line 3 (last key "limit.jobs"): incompatible types`},
		{"[limit]\njobs = 5", "limit is a list of tables: want [[limit]]"},
		{"[[policy]]\nmax-attempts = 5", `policy 1: no tubes; use "*" for every tube`},
		{"[[policy]]\ntubes = '*'\nmax-attempts = 5", "policy 1: tubes: want a list of patterns"},
		{"[[policy]]\ntubes = [5]\nmax-attempts = 5", "policy 1: tubes: want a list of patterns"},
		{"[[policy]]\ntubes = ['*']\nmax-attempt = 5", `policy 1: unknown setting "max-attempt"; the settings are max-attempts, `},
		{"[[policy]]\ntubes = ['*']\nmax-attempts = 10001", "policy 1: max-attempts: want a whole number from 1"},
		{"[[listener]]\naddress = '127.0.0.1'\ntls-cert = 'x'", "listener 1: TLS needs both"},
	} {
		path := file(t, c.text)
		s, err := read(t, "--config", path)
		if err == nil {
			_, err = s.Options.Endpoints()
		}
		if err == nil {
			_, err = s.Options.Policy()
		}
		if err == nil {
			_, err = s.Options.QueueLimits()
		}
		if err == nil {
			_, err = s.Options.TubePolicies()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) || exit.Code(err) != exit.Usage {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

// An unreadable file is a command-line error.
func TestNoFile(t *testing.T) {
	for path, want := range map[string]string{"nowhere.toml": "no such file or directory", ".": "is a directory"} {
		if _, err := read(t, "--config", path); err == nil || err.Error() != path+": cannot read the configuration: "+want || exit.Code(err) != exit.Usage {
			t.Error(err)
		}
	}
}

// Letters can be bundled, a value can be in the same word, and later options override
// earlier ones.
func TestLetters(t *testing.T) {
	s, err := read(t, "-p", "1", "-z", "10", "-VFVp0", "-z3")
	if err != nil {
		t.Fatal(err)
	}
	if opt := s.Options; opt.Verbose != 2 || opt.Journal.Fsync != neverSync || opt.Port != "0" || opt.MaxJobSize != 3 {
		t.Errorf("%+v", opt)
	}
}

// The server does not start if the name of an environment variable resembles a setting,
// or if its value is wrong.
func TestVariableErrors(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"BEANPOLE_MAX_JOB_SIZE", "3x", `bad value "3x" for max-job-size in the environment variable BEANPOLE_MAX_JOB_SIZE: want bytes as a decimal number`},
		{"BEANPOLE_NO_FSYNC", "perhaps", "BEANPOLE_NO_FSYNC: want true or false"},
		{"BEANPOLE_REQUIRE_AUHT", "true", "unknown environment variable BEANPOLE_REQUIRE_AUHT; did you mean BEANPOLE_REQUIRE_AUTH?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			if _, err := read(t); err == nil || !strings.Contains(err.Error(), c.want) || exit.Code(err) != exit.Usage {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// The first table that matches a tube applies to it.
func TestQueueLimits(t *testing.T) {
	s, err := read(t, "--config", file(t, `
[[limit]]
tubes = ["mail", "mail-*"]
jobs = 10

[[limit]]
tubes = ["*"]
bytes = 1000
`))
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Options.QueueLimits()
	if err != nil {
		t.Fatal(err)
	}
	for tube, want := range map[string]engine.TubeLimits{
		"mail": {Jobs: 10}, "mail-out": {Jobs: 10}, "mailing": {Bytes: 1000},
	} {
		if got := l.Tube(tube); got != want {
			t.Errorf("%s: %+v, want %+v", tube, got, want)
		}
	}
}
