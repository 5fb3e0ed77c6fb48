package journal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/advice"
	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// run runs a command, checks its exit code, and returns its output.
func run(t *testing.T, code int, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := New()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	got := 0
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		got = exit.Code(err)
		out.WriteString(err.Error() + "\n")
	}
	if got != code {
		t.Errorf("%q: code %d, want %d\n%s", args, got, code, &out)
	}
	return out.String()
}

// serve opens the journal in a directory like a server, and puts a job for each body,
// each in a separate turn. It returns the error of the start.
func serve(t *testing.T, dir string, segment int64, bodies ...string) error {
	t.Helper()
	var turns []func(e *engine.Engine, now int64)
	for _, body := range bodies {
		turns = append(turns, func(e *engine.Engine, now int64) {
			e.PutInto(now, []byte("mail"), engine.Spec{TTR: 60}, []byte(body))
		})
	}
	return serveTurns(t, dir, segment, turns...)
}

func serveTurns(t *testing.T, dir string, segment int64, turns ...func(e *engine.Engine, now int64)) error {
	t.Helper()
	j := journal.New(journal.Options{SegmentSize: segment, Epoch: time.Now().UnixNano()})
	e := engine.New(engine.Options{Logged: true})
	if _, err := j.Open(vfs.OS, dir, e); err != nil {
		return advice.Explain(dir, err)
	}
	b := broker.New(e, broker.Options{Log: j})
	for _, turn := range turns {
		check(t, b.Call(turn))
	}
	check(t, b.Close())
	return nil
}

// binlogs copies beanstalkd files that were recorded for package binlog into a directory
// below the working directory.
func binlogs(t *testing.T, dir, of string, names ...string) {
	t.Helper()
	check(t, os.MkdirAll(dir, 0o700))
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(recorded, of, name))
		check(t, err, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
}

// recorded is the absolute path of the recorded files.
var recorded, _ = filepath.Abs("../../journal/binlog/testdata")

// starts checks that a server starts in a directory, or that it fails with the given
// reason.
func starts(t *testing.T, dir, why string) {
	t.Helper()
	err := serve(t, dir, 512)
	if why == "" && err != nil || why != "" && (err == nil || !matches(err.Error(), why)) {
		t.Errorf("the start in %s: %v, want %q", dir, err, why)
	}
}

func matches(text, pattern string) bool {
	return regexp.MustCompile(`(?m)` + pattern).MatchString(text)
}

func says(t *testing.T, text string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !matches(text, p) {
			t.Errorf("no match for %s:\n%s", p, text)
		}
	}
}

// three creates a journal with three jobs in three segments, and makes its parent the
// working directory.
func three(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	check(t, os.Mkdir("jobs", 0o700))
	if err := serve(t, "jobs", 512, strings.Repeat("1", 340), strings.Repeat("2", 340), "three"); err != nil {
		t.Fatal(err)
	}
	says(t, run(t, 0, "check", "jobs"), `^jobs +3: 3 ready$`)
}

func check(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// A file that has a segment's name, but is not a segment, prevents the start, which
// changes nothing.
func TestForeignFiles(t *testing.T) {
	three(t)
	const seventh = "jobs/beanpole.0000000000000007.wal"
	for _, make := range []func() error{func() error { return syscall.Mkfifo(seventh, 0o600) }, func() error { return os.Mkdir(seventh, 0o700) }} {
		check(t, make())
		starts(t, "jobs", `^directory jobs: open `+seventh+`: not a regular file \(nothing was changed; move it away\)$`)
		says(t, run(t, 1, "check", "jobs"), "0007.wal: not a regular file")
		says(t, run(t, 1, "repair", "jobs", "new"), "0007.wal: not a regular file")
		check(t, os.Remove(seventh))
	}
	const large = "jobs/beanpole.ffffffffffffffff.wal"
	check(t, os.WriteFile(large, nil, 0o600))
	starts(t, "jobs", large+` at offset 0: sequence above the maximum .ffffffff.; move the file away`)
	check(t, os.Remove(large))
	says(t, run(t, 0, "check", "jobs"), `^jobs +3: 3 ready$`)

	check(t, os.Remove("jobs/lock"), syscall.Mkfifo("jobs/lock", 0o600), syscall.Mkfifo("fifo", 0o600))
	starts(t, "jobs", "lock jobs/lock: not a regular file")
	run(t, 10, "repair", "jobs", "new")
	says(t, run(t, 10, "check", "jobs"), `^jobs/lock is not a regular file, and no server starts with it; move it away$`)
	run(t, 10, "check", "fifo")
}

// A directory without a journal is an error.
func TestNoJournal(t *testing.T) {
	t.Chdir(t.TempDir())
	check(t, os.Mkdir("etc", 0o700), os.WriteFile("etc/passwd", nil, 0o600))
	for _, args := range [][]string{{"check", "etc"}, {"dump", "etc"}, {"dump", "--live", "etc"}, {"repair", "etc", "new"}, {"copy", "etc", "new"}, {"convert", "etc", "--beanstalkd", "new"}} {
		says(t, run(t, 1, args...), `^directory etc contains no journal$`)
	}
	run(t, 10, "check", "nowhere")
	for _, name := range []string{"etc/lock", "new"} {
		if _, err := os.Lstat(name); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}

// A server does not start in a directory whose beanstalkd files it cannot import.
func TestAdoptRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	check(t, os.MkdirAll("odd/binlog.1", 0o700))
	starts(t, "odd", "binlog.1: not a regular file")
	if wals, _ := filepath.Glob("odd/*.wal"); len(wals) > 0 {
		t.Error(wals)
	}
	binlogs(t, "mixed", "v7-records", "binlog.1")
	starts(t, "mixed", "")
	binlogs(t, "mixed", "v7-records", "binlog.1")
	starts(t, "mixed", "beanstalkd files .* next to a journal.*move those files to another directory, THERE")
}

// After an interrupted import of beanstalkd's files, no command uses the incomplete
// journal. The next start repeats the import, unless beanstalkd's files are missing.
func TestAdoptInterrupted(t *testing.T) {
	three(t)
	check(t, os.WriteFile("jobs/beanpole.adopting", nil, 0o600))
	says(t, run(t, 1, "copy", "jobs", "new"), `import of the beanstalkd files .* was interrupted`)
	says(t, run(t, 1, "check", "jobs"), `^takeover +interrupted`, `\(put the files back; or remove beanpole.adopting`)
	starts(t, "jobs", `was interrupted, and the files are missing \(put the files back`)
	binlogs(t, "jobs", "v7-records", "binlog.1")
	says(t, run(t, 0, "check", "jobs"), `^takeover +interrupted`, `which the next start imports`)
	starts(t, "jobs", "")
	says(t, run(t, 0, "check", "jobs"), `^jobs +3: .*buried`)
}
