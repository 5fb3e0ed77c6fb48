package top

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"github.com/hinshun/vt10x"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
)

var update = flag.Bool("top.update", false, "write the screens; then look at them")

// A fakeServer has tubes that a test changes.
type fakeServer struct {
	mu    sync.Mutex
	now   time.Time
	tubes []Tube
	did   []string
	fail  error

	timeouts uint64
}

func newFakeServer() *fakeServer {
	return &fakeServer{now: time.Unix(1e9, 0), tubes: []Tube{
		{Tube: admin.Tube{Name: "default", TotalJobs: 10, Deletes: 10, Watching: 20}},
		{Tube: admin.Tube{Name: "mail", Jobs: admin.JobCounts{Ready: 1234, Reserved: 8, Delayed: 20}, Watching: 8, TotalJobs: 100000, Deletes: 98000, OldestReady: 83}},
		{Tube: admin.Tube{Name: "reports", Jobs: admin.JobCounts{Buried: 3}, TotalJobs: 3, Watching: 1}},
		{Tube: admin.Tube{Name: "thumbnails-of-all-the-pictures-that-were-ever-sent", Jobs: admin.JobCounts{Ready: 12345678}, TotalJobs: 12345678, PauseLeft: 59*60 + 3, OldestReady: 27*3600 + 5*60}},
		{Tube: admin.Tube{Name: "übergrößen", Waiting: 12, Watching: 12, TotalJobs: 7, Deletes: 7}},
	}}
}

// Snapshot advances the time by a second, in which 50 jobs were put into mail and 25 were
// deleted.
func (f *fakeServer) Snapshot() (Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return Snapshot{}, f.fail
	}
	f.now = f.now.Add(time.Second)
	for i := range f.tubes {
		if f.tubes[i].Name == "mail" {
			f.tubes[i].TotalJobs += 50
			f.tubes[i].Deletes += 25
		}
	}
	f.timeouts += 2
	return Snapshot{At: f.now, Tubes: append([]Tube(nil), f.tubes...), ServerStats: client.ServerStats{
		Server: "beanpole", ServerVersion: "1.2.3", Uptime: 26*time.Hour + 3*time.Second, Connections: 42, Waiting: 12,
		JobsReady: 12346912, JobsReserved: 8, JobsDelayed: 20, JobsBuried: 3, JobTimeouts: f.timeouts,
	}}, nil
}

func (f *fakeServer) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, fmt.Sprintf(format, args...))
}

func (f *fakeServer) Pause(tube string, d time.Duration) error {
	f.note("pause %s %s", tube, d)
	return nil
}

func (f *fakeServer) Kick(tube string, count int) (int, error) {
	f.note("kick %s %d", tube, count)
	return 3, nil
}

func (f *fakeServer) Look(tube, state string) (string, error) {
	f.note("look %s %s", tube, state)
	if state == "delayed" {
		return "", errors.New("the connection was lost")
	}
	return "job 17, priority 5\n11 bytes:\n\nhello " + state + " " + strings.Repeat("x", 100), nil
}

// asks requests a snapshot and applies it.
func (m *model) asks() {
	next, _ := m.Update(m.snapshot()())
	*m = next.(model)
}

// plain returns the screen without its styles.
func (m *model) plain() string { return ansi.Strip(m.screen()) }

// A screen is a terminal that shows the view.
type screen struct {
	t      *testing.T
	server *fakeServer
	keys   *os.File
	term   vt10x.Terminal
	ended  chan error
}

func show(t *testing.T, server *fakeServer, width, height int) *screen {
	t.Helper()
	t.Setenv("TERM", "xterm")
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo-terminal: ", err)
	}
	if err := pty.Setsize(ptmx, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)}); err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, server: server, keys: ptmx, term: vt10x.New(vt10x.WithSize(width, height)), ended: make(chan error, 1)}
	go func() {
		for runes := bufio.NewReader(ptmx); ; { // a Read can end within a character
			r, _, err := runes.ReadRune()
			if err != nil {
				return
			}
			s.term.Write(utf8.AppendRune(nil, r))
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		m := newModel(server, "10.0.0.1:11300", time.Hour)
		m.now = func() time.Time { return time.Unix(1e9+1, 0) }
		s.ended <- run(ctx, m, tty, tty)
		tty.Close()
	}()
	t.Cleanup(func() {
		cancel()
		ptmx.Close()
	})
	return s
}

func (s *screen) press(keys string) {
	s.t.Helper()
	if _, err := s.keys.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// text returns the screen, without trailing blanks.
func (s *screen) text() string {
	var lines []string
	for line := range strings.Lines(s.term.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.Join(lines, "\n") + "\n"
}

func (s *screen) wait(part string) {
	s.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !strings.Contains(s.text(), part); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("timeout: the screen has no %q:\n%s", part, s.text())
		}
	}
}

// golden compares the screen with its file in testdata.
func (s *screen) golden(name string) {
	s.t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		for old := ""; old != s.text(); { // the screen can be half drawn
			old = s.text()
			time.Sleep(200 * time.Millisecond)
		}
		if err := os.WriteFile(path, []byte(s.text()), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	// The last line can still be in transit, so wait for it.
	for deadline := time.Now().Add(2 * time.Minute); s.text() != string(want) && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	if diff := cmp.Diff(string(want), s.text()); diff != "" {
		s.t.Errorf("%s (- kept, + now):\n%s", name, diff)
	}
}
