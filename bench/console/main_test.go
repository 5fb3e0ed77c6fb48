package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/bench"
	"github.com/beanpole-mq/beanpole/bench/load"
	"github.com/beanpole-mq/beanpole/internal/test/conformance"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// beanpole is the program, built once for all tests.
var beanpole string

func TestMain(m *testing.M) {
	if runtime.GOOS != "linux" {
		fmt.Println("the load generator runs on Linux only")
		return
	}
	if len(os.Args) == 3 && os.Args[1] == "-"+bench.SteadyFlag { // started by a test
		if err := bench.ServeSteady(context.Background(), os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	dir, err := os.MkdirTemp("", "console")
	if err != nil {
		panic(err)
	}
	beanpole = filepath.Join(dir, "beanpole")
	if err := conformance.Build(beanpole); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func small() *options {
	return &options{tubes: 20, jobs: 205, views: 3, viewers: 4, lasts: 50 * time.Millisecond}
}

// All tables are there, with all their rows.
func TestRun(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := small().run(t.Context(), &out, beanpole); err != nil {
		t.Fatal(err)
	}
	const span = `[0-9.]+ (us|ms|s)`
	want := []string{
		`4 live viewers of another server \| ` + span + ` \| ` + span, `4 live viewers \| `, `nobody looks \| `, `another server: [0-9.]+ \(`,
		`JSON pointer \| ` + span + ` \| ` + span + ` \| ` + span, `console \| [0-9.]+ \| [0-9]+ \|`, "`--console=false` ",
	}
	for _, p := range pages {
		want = append(want, regexp.QuoteMeta(p.name)+` \| [1-9][0-9]*\.[0-9] \| `+span+` \| `+span)
	}
	if beanstalkd() != "" {
		want = append(want, `beanstalk_console .*: `+span)
	}
	for _, row := range want {
		if !regexp.MustCompile(row).MatchString(out.String()) {
			t.Errorf("there is no %q in\n%s", row, out.String())
		}
	}
}

// Each tube has as many jobs as are promised, and no other does.
func TestFill(t *testing.T) {
	t.Parallel()
	s, err := small().start(t.Context(), beanpole)
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	d, err := load.Dial(t.Context(), s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for i := range small().tubes {
		stats, err := d.Stats(wire.AppendStatsTubeCommand(nil, tubeName(i)))
		if err != nil || stats["current-jobs-ready"] != "10" {
			t.Fatal(tubeName(i), stats["current-jobs-ready"], err)
		}
	}
	if stats, err := d.Stats(wire.AppendStatsCommand(nil)); err != nil || stats["current-jobs-ready"] != "200" {
		t.Error(stats["current-jobs-ready"], err)
	}
	if _, _, looked, err := s.search(t.Context(), "text=nowhere"); looked != 200 || err != nil {
		t.Error(looked, err)
	}
}

// Clients that have lost their server, and viewers that see nothing, are errors: there would be figures without them.
func TestFailures(t *testing.T) {
	t.Parallel()
	s, err := small().start(t.Context(), beanpole)
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	if err := s.get(t.Context(), "/console/nothing", func(io.Reader) error { return nil }); err == nil {
		t.Error("there is a page that there should not be")
	}
	if err := s.watch(t.Context(), "/console/nothing", func() { t.Error("it was seen") }); err == nil {
		t.Error("there is a stream of a page that there is not")
	}
	alone, err := small().start(t.Context(), beanpole)
	if err != nil {
		t.Fatal(err)
	}
	opt := small()
	opt.lasts = time.Hour // it ends with the stream
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		alone.watch(t.Context(), views[0], alone.stop)
	}()
	if _, err := opt.beside(t.Context(), s, alone); err == nil {
		t.Error("the streams have ended, and clients were measured")
	}
	<-gone
	stop, err := clients(t.Context(), alone)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stop(); err == nil {
		t.Error("a server is measured that has gone")
	}
}

// The threads of a process are added up: more and more, as long as it does something.
func TestScheduled(t *testing.T) {
	_, used, err := scheduled(os.Getpid())
	for err == nil {
		var now time.Duration
		if _, now, err = scheduled(os.Getpid()); now > used {
			break
		}
	}
	if err != nil {
		t.Error(err)
	}
	if _, _, err := scheduled(-1); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestPercentile(t *testing.T) {
	took := make([]time.Duration, 200)
	for i := range took {
		took[i] = time.Duration(i+1) * time.Millisecond
	}
	for p, want := range map[int]string{50: "100 ms", 99: "198 ms", 100: "200 ms"} {
		if got := percentile(took, p); got != want {
			t.Errorf("p%d: %s, want %s", p, got, want)
		}
	}
	if got := percentile(took[:1], 99); got != "1.00 ms" {
		t.Error(got)
	}
}
