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

	"github.com/beanpole-mq/beanpole/internal/broker"
	"github.com/beanpole-mq/beanpole/internal/cli/advice"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/journal"
	"github.com/beanpole-mq/beanpole/internal/vfs"
)

// run runs a command, which must end with a code, and returns what it says.
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
		got = kit.ExitCode(err)
		out.WriteString(err.Error() + "\n")
	}
	if got != code {
		t.Errorf("%q: code %d, want %d\n%s", args, got, code, &out)
	}
	return out.String()
}

// serve opens the journal in a directory as a server does, and puts jobs with these bodies, each with a turn of its own. The error is
// that of the start.
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

// binlogs copies recorded files of beanstalkd, as package binlog describes them, into a directory of the working directory.
func binlogs(t *testing.T, dir, of string, names ...string) {
	t.Helper()
	check(t, os.MkdirAll(dir, 0o700))
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(recorded, of, name))
		check(t, err, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
}

// recorded is where they are, from wherever a test runs.
var recorded, _ = filepath.Abs("../../journal/binlog/testdata")

// starts fails the test unless a server starts in a directory, or says why it does not.
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

// says fails the test unless a text has a match of each pattern.
func says(t *testing.T, text string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !matches(text, p) {
			t.Errorf("no match for %s:\n%s", p, text)
		}
	}
}

// three makes a journal of three jobs in three segments, in the working directory of the test.
func three(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	check(t, os.Mkdir("jobs", 0o700))
	if err := serve(t, "jobs", 512, strings.Repeat("1", 300), strings.Repeat("2", 300), "three"); err != nil {
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

// copied returns a copy of the journal.
func copied(t *testing.T, to string) string {
	t.Helper()
	check(t, os.CopyFS(to, os.DirFS("jobs")))
	return to
}

func segment(n string) string { return "beanpole.000000000000000" + n + ".wal" }

// The oldest segment is missed, and so is the newest, by the start and by check; repair makes a journal of the rest.
func TestSegmentIsMissing(t *testing.T) {
	three(t)
	for _, test := range []struct{ segment, file, reason string }{
		{"1", "2", "the segment before, beanpole.0000000000000001.wal, is missing: the oldest that is needed is beanpole.0000000000000001.wal"},
		{"3", "2", "the segment that follows, beanpole.0000000000000003.wal, is missing, or its beginning is damaged"},
	} {
		dir := copied(t, "without"+test.segment)
		check(t, os.Remove(filepath.Join(dir, segment(test.segment))))
		starts(t, dir, filepath.Join(dir, segment(test.file))+` at offset [0-9]+: `+test.reason+` \(nothing was changed; `)
		says(t, run(t, 1, "check", dir), `^damage +`+segment(test.file)+`: .*: `+test.reason+`$`)
		says(t, run(t, 0, "repair", dir, dir+"new"), `^jobs +2: 2 ready$`)
		starts(t, dir+"new", "")
	}
}

// Segments that were exchanged are read in their order, and a copy of another one in the place of a segment counts once.
func TestSegmentsAreRenamed(t *testing.T) {
	three(t)
	const renamed = `the file was renamed, or is a copy: it is beanpole.0000000000000003.wal`
	dir := copied(t, "swapped")
	at := func(n string) string { return filepath.Join(dir, segment(n)) }
	check(t, os.Rename(at("2"), at("9")), os.Rename(at("3"), at("2")), os.Rename(at("9"), at("3")))
	says(t, run(t, 1, "check", dir), `^damage +`+segment("2")+`: .*: `+renamed+`$`)
	says(t, run(t, 0, "repair", dir, "new"), `^jobs +3: 3 ready$`)

	dir = copied(t, "doubled")
	third, err := os.ReadFile(at("3"))
	check(t, err, os.WriteFile(at("2"), third, 0o600))
	starts(t, dir, at("2")+` at offset 0: `+renamed+` `)
	says(t, run(t, 0, "repair", dir, "new2"), `^damage +`+segment("2")+`: .* `+renamed+`$`, `^jobs +2: 2 ready$`)
}

// Whatever has the name of a segment and is none stops the start, and nothing is changed.
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
	starts(t, "jobs", large+` at offset 0: the number in the file's name is too large for a segment, the largest is ffffffff: move the file away`)
	check(t, os.Remove(large))
	says(t, run(t, 0, "check", "jobs"), `^jobs +3: 3 ready$`)

	check(t, os.Remove("jobs/lock"), syscall.Mkfifo("jobs/lock", 0o600), syscall.Mkfifo("fifo", 0o600))
	starts(t, "jobs", "open jobs/lock: ")
	run(t, 10, "repair", "jobs", "new")
	says(t, run(t, 10, "check", "jobs"), `^jobs/lock is not a regular file: no server will start \(move it away\)$`)
	run(t, 10, "check", "fifo")
}

// What has never been a journal is not taken for one.
func TestNoJournal(t *testing.T) {
	t.Chdir(t.TempDir())
	check(t, os.Mkdir("etc", 0o700), os.WriteFile("etc/passwd", nil, 0o600))
	for _, args := range [][]string{{"check", "etc"}, {"dump", "etc"}, {"dump", "--live", "etc"}, {"repair", "etc", "new"}, {"copy", "etc", "new"}, {"convert", "etc", "--beanstalkd", "new"}} {
		says(t, run(t, 1, args...), `^directory etc: there is no journal$`)
	}
	run(t, 10, "check", "nowhere")
	for _, name := range []string{"etc/lock", "new"} {
		if _, err := os.Lstat(name); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}

// Two queues of a beanstalkd, recorded: one is taken over, the other merged. What was merged or taken over before is known by its bytes.
func TestMerge(t *testing.T) {
	t.Chdir(t.TempDir())
	binlogs(t, "queue", "v7-records", "binlog.1")
	check(t, serve(t, "queue", 0, "mine"))
	binlogs(t, "other", "v7-records", "binlog.1")
	says(t, run(t, 1, "merge", "queue", "other"), "binlog.1: it was merged or taken over before: its jobs would be there twice .*nothing was merged")
	binlogs(t, "queue", "v7-records", "binlog.1")
	starts(t, "queue", "")
	if _, err := os.Stat("queue/beanstalkd-binlog.1.2"); err != nil {
		t.Error(err)
	}

	check(t, os.Remove("other/binlog.1"))
	binlogs(t, "other", "v7-compacted", "binlog.6", "binlog.7")
	says(t, run(t, 0, "merge", "queue", "other"), `^merged 13 jobs from other into queue; 0 have new ids$`, `^old and new ids are in queue/merge-[0-9TZ.]+\.ids$`, `^start no server on other again`)
	says(t, run(t, 0, "check", "queue"), `^jobs +17: 5 ready, 7 delayed, 5 buried$`)
	if _, err := os.Stat("other/binlog.7"); err != nil {
		t.Error(err)
	}

	// A journal is merged, too; its pauses are left out, and ids clash.
	check(t, os.Mkdir("third", 0o700), os.Mkdir("done", 0o700))
	check(t, serveTurns(t, "queue", 0, func(e *engine.Engine, now int64) { e.Pause(now, []byte("mail"), 500) }))
	says(t, run(t, 0, "merge", "third", "queue"), `^merged 17 jobs from queue into third; 0 have new ids$`, `^the pause of tube mail is left out$`)
	check(t, serveTurns(t, "done", 0, func(e *engine.Engine, now int64) {
		id, _ := e.PutInto(now, []byte("mail"), engine.Spec{TTR: 60}, nil)
		e.DeleteJob(id)
	}))
	if got := run(t, 0, "merge", "third", "done"); !matches(got, "^merged 0 jobs") || matches(got, "old and new ids") {
		t.Error(got)
	}
	says(t, run(t, 0, "dump", "--live", "queue"), `id=5 .*body="mine"`)
	check(t, serve(t, "third", 0, "yours"))
	says(t, run(t, 0, "dump", "--live", "third"), `id=84 .*body="yours"`)
	says(t, run(t, 0, "merge", "queue", "third"), `^merged 18 jobs from third into queue; 17 have new ids$`)
	says(t, run(t, 0, "check", "queue"), `^jobs +35: 11 ready, 14 delayed, 10 buried$`)
}

// What cannot be merged is not, and what is damaged gives what is whole.
func TestMergeRefused(t *testing.T) {
	three(t)
	check(t, os.Mkdir("nothing", 0o700), os.MkdirAll("odd/binlog.1", 0o700))
	binlogs(t, "mixed", "v7-records", "binlog.1")
	starts(t, "mixed", "")
	binlogs(t, "mixed", "v7-compacted", "binlog.6")
	for _, test := range []struct {
		code          int
		dir, from, is string
	}{
		{5, "jobs", "jobs", "are the same directory"}, {10, "jobs", "nowhere", "nowhere"},
		{1, "jobs", "nothing", `neither files of beanstalkd \(binlog\.\*\) nor a journal`},
		{1, "nothing", "mixed", `files of beanstalkd .* beside a journal.*\(nothing was merged\)`},
		{1, "nothing", "odd", `binlog.1: not a regular file \(nothing was merged\)`},
	} {
		says(t, run(t, test.code, "merge", test.dir, test.from), test.is)
	}
	says(t, run(t, 5, "merge", "jobs"), "merge needs DIR FROM ")
	starts(t, "odd", "binlog.1: not a regular file")
	if wals, _ := filepath.Glob("odd/*.wal"); len(wals) > 0 {
		t.Error(wals)
	}

	binlogs(t, "damaged", "v7-records", "binlog.1")
	info, err := os.Stat("damaged/binlog.1")
	check(t, err, os.Truncate("damaged/binlog.1", info.Size()-3700))
	says(t, run(t, 1, "merge", "nothing", "damaged"), `^damage: binlog.1 at `, `^merged [1-3] jobs from damaged into nothing`, "files of beanstalkd are damaged: what is whole was merged")
}
