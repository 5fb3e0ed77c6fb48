package conformance

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/exectest"
)

var (
	serverPath = flag.String("server", "", "play the transcripts against this program instead of building cmd/beanpole")
)

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "32") // most tests wait; the command line overrides it
	os.Exit(exectest.Main(m))
}

// TestBeanpole runs all transcripts against our binary.
func TestBeanpole(t *testing.T) {
	t.Parallel()
	Run(t, beanpole(t), Beanpole)
}

// TestBeanpole112 runs all transcripts against our binary with --compat 1.12, the version
// of Debian's beanstalkd.
func TestBeanpole112(t *testing.T) {
	t.Parallel()
	p := beanpole(t)
	p.Args = []string{"--compat", "1.12"}
	Run(t, p, Beanpole112)
}

// TestReference runs all transcripts against the real beanstalkd, so that each transcript
// describes its behaviour.
func TestReference(t *testing.T) {
	t.Parallel()
	server, dialect := beanstalkd(t)
	Run(t, server, dialect)
}

// TestTranscripts checks without a server that every transcript can be parsed and is
// recorded.
func TestTranscripts(t *testing.T) {
	list, err := Transcripts()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 60 {
		t.Errorf("only %d transcripts found", len(list))
	}
	for _, tr := range list {
		if !strings.Contains(tr.Name, "-") {
			t.Errorf("%s.txt: the name is not CATEGORY-SUBJECT", tr.Name)
		}
	}
}

// beanstalkd returns the real server of this machine, and its dialect.
func beanstalkd(t *testing.T) (Process, Dialect) {
	t.Helper()
	path := os.Getenv("BEANSTALKD")
	if path == "" {
		var err error
		if path, err = exec.LookPath("beanstalkd"); err != nil {
			t.Skip("needs the real beanstalkd in PATH or its path in $BEANSTALKD (Debian: apt-get install beanstalkd)")
		}
	}
	out, err := exec.Command(path, "-v").Output()
	if err != nil {
		t.Fatal(err)
	}
	switch version := strings.TrimSpace(string(out)); {
	case strings.HasPrefix(version, "beanstalkd 1.12"):
		return Process{Path: path}, Beanstalkd112
	case strings.HasPrefix(version, "beanstalkd 1.13"):
		return Process{Path: path}, Beanstalkd113
	default:
		t.Fatalf("%s has version %q; supported are 1.12 and 1.13", path, version)
		return Process{}, Dialect{}
	}
}
