package conformance

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/test/exectest"
	"github.com/beanpole-mq/beanpole/internal/test/parallel"
)

var (
	serverPath = flag.String("server", "", "play the transcripts against this program instead of building cmd/beanpole")
	record     = flag.Bool("record", false, "TestRecord writes the real server's answers into testdata")
	only       = flag.String("transcript", "*", "with -record: the transcripts to record, a pattern as of path.Match")
)

func TestMain(m *testing.M) { os.Exit(exectest.Main(parallel.M{M: m, Most: 32})) }

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
	// beanstalkd sometimes loses the timer of a connection that only waits (its issues
	// 262 and 380), so each transcript has several chances.
	run(t, server, dialect, 3)
}

// TestRecord replaces replies in testdata that differ from the real server's, and fills
// in the questions (A< ?) of drafts.
func TestRecord(t *testing.T) {
	if !*record {
		t.Skip("writes only with -record")
	}
	server, dialect := beanstalkd(t)
	each(t, func(t *testing.T, tr *Transcript) {
		if ok, err := filepath.Match(*only, tr.Name); err != nil || !ok {
			t.Skip("not selected by -transcript", err)
		}
		if tr.Since != "" && dialect.LooseTimeouts {
			t.Skipf("describes beanstalkd %s and later", tr.Since)
		}
		t.Parallel()
		name := filepath.Join("testdata", tr.Name+".txt")
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		instead := make(map[int][]string) // by first line
		skip := make(map[int]bool)        // lines below a replaced first one
		err = tr.converse(server.Start(t, tr.Args), dialect, func(s *step, got []string) {
			instead[s.first] = got
			for n := s.first + 1; n <= s.last; n++ {
				skip[n] = true
			}
		})
		if err != nil {
			t.Error(err)
		}
		var out []string
		for i, line := range lines {
			if got, ok := instead[i+1]; ok {
				out = append(out, got...)
			} else if !skip[i+1] {
				out = append(out, line)
			}
		}
		if len(instead) > 0 {
			if err := os.WriteFile(name, []byte(strings.Join(out, "\n")), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	})
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
		for _, s := range tr.steps {
			if s.verb == expectAny {
				t.Errorf("%s.txt:%d: a draft; record it with -record", tr.Name, s.first)
			}
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
