package top

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"github.com/hinshun/vt10x"
)

var update = flag.Bool("top.update", false, "write the screens; then look at them")

// A fakeServer has tubes that a script changes.
type fakeServer struct {
	mu    sync.Mutex
	now   time.Time
	tubes []Tube
	did   []string
	fail  error

	timeouts uint64
	onScreen []string // what it was asked for
}

func newFakeServer() *fakeServer {
	return &fakeServer{now: time.Unix(1e9, 0), tubes: []Tube{
		{Name: "default", Puts: 10, Deletes: 10, Watching: 20},
		{Name: "mail", Ready: 1234, Reserved: 8, Delayed: 20, Watching: 8, Puts: 100000, Deletes: 98000, Age: 83 * time.Second, AgeKnown: true},
		{Name: "reports", Buried: 3, Puts: 3, Watching: 1},
		{Name: "thumbnails-of-all-the-pictures-that-were-ever-sent", Ready: 12345678, Puts: 12345678, PauseLeft: 59*time.Minute + 3*time.Second, Age: 27*time.Hour + 5*time.Minute, AgeKnown: true},
		{Name: "übergrößen", Waiting: 12, Watching: 12, Puts: 7, Deletes: 7},
	}}
}

// Snapshot is a second later each time; in that, 50 jobs were put into mail and 25
// were done.
func (f *fakeServer) Snapshot(onScreen []string) (Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onScreen = onScreen
	if f.fail != nil {
		return Snapshot{}, f.fail
	}
	f.now = f.now.Add(time.Second)
	for i := range f.tubes {
		if f.tubes[i].Name == "mail" {
			f.tubes[i].Puts += 50
			f.tubes[i].Deletes += 25
		}
	}
	f.timeouts += 2
	return Snapshot{At: f.now, Version: "beanpole 1.2.3", Uptime: 26*time.Hour + 3*time.Second, Connections: 42, Waiting: 12,
		Ready: 12346912, Reserved: 8, Delayed: 20, Buried: 3, Timeouts: f.timeouts, Tubes: append([]Tube(nil), f.tubes...)}, nil
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

func (f *fakeServer) Clear(tube, state string) (int, error) {
	f.note("clear %s %s", tube, state)
	return 3, nil
}

func (f *fakeServer) Look(tube, state string) (string, error) {
	f.note("look %s %s", tube, state)
	if state == "delayed" {
		return "", errors.New("the connection was lost")
	}
	return "job 17, priority 5\n11 bytes:\n\nhello " + state + " " + strings.Repeat("x", 100), nil
}

// plain returns the screen without its styles.
func (m *model) plain() string { return ansi.Strip(m.screen()) }

// A screen is a terminal with the view in it.
type screen struct {
	t      *testing.T
	server *fakeServer
	keys   *os.File
	term   vt10x.Terminal
	ended  chan error
}

// show starts the view in a terminal of a size.
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
		for runes := bufio.NewReader(ptmx); ; { // a Read may end within a character
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

// text returns the screen, without the blanks at the ends of lines.
func (s *screen) text() string {
	var lines []string
	for line := range strings.Lines(s.term.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.Join(lines, "\n") + "\n"
}

// wait waits until the screen has a text.
func (s *screen) wait(part string) {
	s.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !strings.Contains(s.text(), part); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("the screen never has %q:\n%s", part, s.text())
		}
	}
}

// golden compares the screen with the one that was kept.
func (s *screen) golden(name string) {
	s.t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		for old := ""; old != s.text(); { // it may be half drawn
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
	// The last line may be on its way still: wait for it.
	for deadline := time.Now().Add(2 * time.Minute); s.text() != string(want) && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	if diff := cmp.Diff(string(want), s.text()); diff != "" {
		s.t.Errorf("%s (- kept, + now):\n%s", name, diff)
	}
}

func TestScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 30}, {60, 8}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			name := func(what string) string { return fmt.Sprintf("%s-%dx%d", what, size[0], size[1]) }
			s := show(t, newFakeServer(), size[0], size[1])
			s.wait("default")
			s.golden(name("tubes"))
			s.press("ss") // by name, by ready
			s.wait("vREADY")
			s.golden(name("by-ready"))
			s.press("?")
			s.wait("any other key: back")
			s.golden(name("help"))
			s.press("x")
			s.wait("vREADY")
			s.press("\r")
			s.wait("hello ready")
			s.golden(name("look"))
			s.press("q") // back
			s.wait("vREADY")
			s.press("q")
			if err := <-s.ended; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	f := newFakeServer()
	s := show(t, f, 100, 20)
	s.wait("default")

	s.press("/")
	s.wait("filter:")
	s.press("ma")
	s.wait("filter: ma")
	s.press("\r")
	s.wait("/ changes it")
	if text := s.text(); !strings.Contains(text, "mail") || strings.Contains(text, "reports") {
		t.Errorf("the filter ma shows:\n%s", text)
	}
	s.press("p")
	s.wait("pause mail for 1h0m, so that nobody gets its jobs? y/n")
	s.press("y")
	s.wait("mail is paused for 1h0m")
	s.press("K")
	s.wait("make 20 of the 20 delayed jobs of mail ready? y/n")
	s.press("y")
	s.wait("jobs of mail that were made ready: 3")
	s.press("\x1b") // esc: all
	s.wait("reports")

	s.press("jg") // down, and to the first
	s.wait("> reports")
	s.press("c")
	s.wait("delete all buried jobs of reports, 3 now? y/n")
	s.golden("clear")
	s.press("n")
	s.wait("nothing was done")
	s.press("c")
	s.wait("y/n")
	s.press("y")
	s.wait("buried jobs of reports that were deleted: 3")

	s.press("\x1b[F") // end
	s.press("c")
	s.wait("übergrößen has no jobs to delete")
	s.press("K")
	s.wait("übergrößen has no jobs to kick")
	s.press("kkk") // up, and nothing else
	s.wait("> thumbnails")
	s.press("p")
	s.wait("end the pause of thumbnails-of-all-the-pictures-that-were-ever-sent, which has 59m3s left? y/n")
	s.press("y")
	s.wait("is not paused any more")
	s.press("\r")
	s.wait("hello ready")
	s.press("\t")
	s.wait("the connection was lost")
	s.press("\x1b[D")
	s.wait("hello ready")
	s.press("\x1b[D")
	s.wait("hello buried")
	s.press("q")
	s.wait("TUBE")
	s.press("\x1b[D") // left: by the last
	s.wait("vDELAYED")
	s.press("r")
	s.wait("^DELAYED")
	s.press("q")
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	want := []string{"pause mail 1h0m0s", "kick mail 100", "clear reports buried",
		"pause thumbnails-of-all-the-pictures-that-were-ever-sent 0s",
		"look thumbnails-of-all-the-pictures-that-were-ever-sent ready",
		"look thumbnails-of-all-the-pictures-that-were-ever-sent delayed",
		"look thumbnails-of-all-the-pictures-that-were-ever-sent ready",
		"look thumbnails-of-all-the-pictures-that-were-ever-sent buried"}
	if diff := cmp.Diff(want, f.did); diff != "" {
		t.Errorf("the keys did something else (- want, + did):\n%s", diff)
	}
}

// What has changed since the view began, or needs a person.
func TestAlarms(t *testing.T) {
	f := newFakeServer()
	m := newModel(f, "a", time.Second)
	ask := func() {
		next, _ := m.Update(m.snapshot()())
		m = next.(model)
	}
	ask()
	if strings.Contains(m.plain(), "+BURIED") {
		t.Errorf("nothing was buried yet:\n%s", m.plain())
	}
	f.tubes[2].Buried = 45
	f.tubes = append(f.tubes, Tube{Name: "zz", Buried: 7, Ready: 1})
	ask()
	for _, want := range []string{"+BURIED", "+42", "+7", "a second: 50 put, 25 deleted, 2.0 timed out"} {
		if !strings.Contains(m.plain(), want) {
			t.Errorf("the screen has no %q:\n%s", want, m.plain())
		}
	}
	f.tubes[2].Buried, f.tubes = 3, f.tubes[:5]
	ask()
	if !strings.Contains(m.plain(), "+BURIED") {
		t.Errorf("a column that was shown has gone:\n%s", m.plain())
	}
}

// Tubes that need attention come first, are marked without colour, and say what is wrong.
func TestAttention(t *testing.T) {
	f := newFakeServer()
	f.tubes = append(f.tubes, Tube{Name: "zz", Ready: 2})
	m := newModel(f, "a", time.Second)
	m.width = 120
	next, _ := m.Update(m.snapshot()())
	m = next.(model)
	if m.shown[0].Name != "zz" {
		t.Errorf("the first is %s", m.shown[0].Name)
	}
	for _, want := range []string{"\n>!zz ", "in 6 tubes, 1 needs attention", "zz: ready jobs, and no connection watches the tube"} {
		if !strings.Contains(m.plain(), want) {
			t.Errorf("the screen has no %q:\n%s", want, m.plain())
		}
	}
}

// What is wrong with a tube is what health says, with what is known of it.
func TestFindings(t *testing.T) {
	for want, tube := range map[string]Tube{
		"":                   {Ready: 1, Watching: 1},
		"buried timeouts":    {BuriedMore: 1, Buried: 1, TimeoutsMore: 1},
		"unwatched buried":   {Ready: 1, Buried: 1},
		"paused":             {Ready: 1, PauseLeft: time.Second, Waits: time.Hour},
		"slow":               {Ready: 1, Watching: 1, Waits: time.Hour},
		"timeouts unwatched": {TimeoutsMore: 1, Ready: 1},
	} {
		var got []string
		tube.look()
		for _, f := range tube.found {
			got = append(got, f.Kind)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%+v: %q, want %s", tube, got, want)
		}
	}
}

// The trouble of the server itself comes before all of its tubes: also a limit that refuses more than when the view began.
func TestServerTrouble(t *testing.T) {
	f := newFakeServer()
	m := newModel(f, "a", time.Second)
	m.width, m.height = 120, 30
	look := func(change func(*Snapshot)) []string {
		s, _ := f.Snapshot(nil)
		change(&s)
		next, _ := m.Update(snapshotMsg{s, nil})
		m = next.(model)
		return strings.Split(m.plain(), "\n")
	}
	before := look(func(s *Snapshot) { s.Refusals = map[string]uint64{"max-memory": 7, "max-tubes": 1} })
	lines := look(func(s *Snapshot) {
		s.Health.Draining = true
		s.Refusals = map[string]uint64{"max-memory": 8, "max-tubes": 1}
	})
	if want := "the server drains: new jobs are refused; a limit has refused what clients asked for lately: max-memory"; lines[1] != want || len(lines) != len(before) {
		t.Errorf("%q, want %q", lines[1], want)
	}
}

// The screen says how old it is, also when the server says nothing at all.
func TestFreshness(t *testing.T) {
	f := newFakeServer()
	m := newModel(f, "a", time.Second)
	now := f.now
	m.now = func() time.Time { return now }
	if !strings.Contains(m.plain(), "a  asking ...") {
		t.Errorf("before the first answer:\n%s", m.plain())
	}
	next, _ := m.Update(m.snapshot()())
	m = next.(model)
	for after, want := range map[time.Duration]string{0: "a  0s old", 3 * time.Second: "a  2s old", 90 * time.Second: "a  NO ANSWER FOR 1m29s"} {
		now = f.now.Add(after)
		if after > 0 {
			now = time.Unix(1e9, 0).Add(after)
		}
		if !strings.Contains(m.plain(), want) {
			t.Errorf("after %s the screen has no %q:\n%s", after, want, m.plain())
		}
	}
}

// A note goes after a while, and what an action has changed is there at once: a second p
// asks to end the pause.
func TestNotes(t *testing.T) {
	f := newFakeServer()
	m := newModel(f, "a", time.Second)
	now := f.now
	m.now = func() time.Time { return now }
	send := func(msg tea.Msg) (cmd tea.Cmd) {
		var next tea.Model
		next, cmd = m.Update(msg)
		m = next.(model)
		return cmd
	}
	key := func(s string) tea.Cmd { return send(tea.KeyPressMsg{Text: s, Code: []rune(s)[0]}) }
	send(m.snapshot()())
	m.selected = "mail"
	m.arrange()
	key("p")
	send(key("y")())
	if !strings.Contains(m.plain(), "mail is paused for 1h0m") {
		t.Errorf("after p and y:\n%s", m.plain())
	}
	key("p")
	if !strings.Contains(m.plain(), "end the pause of mail") {
		t.Errorf("a second p:\n%s", m.plain())
	}
	key("n")
	now = now.Add(noteTime + time.Second)
	send(clockMsg{})
	if strings.Contains(m.plain(), "nothing was done") {
		t.Errorf("an old note is still there:\n%s", m.plain())
	}
	send(doneMsg{err: errors.New("no such right")})
	send(m.snapshot()())
	if !strings.Contains(m.plain(), "no such right") {
		t.Errorf("a snapshot has hidden why an action failed:\n%s", m.plain())
	}
}

// The server is asked for what is on the screen, also with a filter.
func TestOnScreen(t *testing.T) {
	f := newFakeServer()
	m := newModel(f, "a", time.Second)
	next, _ := m.Update(m.snapshot()())
	m = next.(model)
	m.filter.text = "por"
	m.arrange()
	m.snapshot()()
	if diff := cmp.Diff([]string{"reports"}, f.onScreen); diff != "" {
		t.Errorf("the server was asked for (- want, + was):\n%s", diff)
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 59 * time.Second: "59s", 59*time.Minute + 59*time.Second: "59m59s", time.Hour: "1h0m", 99*time.Hour + 59*time.Minute + time.Second: "99h59m",
		100 * time.Hour: "4d", 9999 * 24 * time.Hour: "9999d",
	} {
		if got := age(d, true); got != want || len(got) > 6 {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

// TestRates is the second snapshot, and a server that does not answer the third.
func TestRates(t *testing.T) {
	f := newFakeServer()
	m := newModel(f, "a", time.Second)
	for range 2 {
		next, _ := m.Update(m.snapshot()())
		m = next.(model)
	}
	if mail := m.shown[slices.IndexFunc(m.shown, func(t Tube) bool { return t.Name == "mail" })]; mail.PutRate != 50 || mail.DeleteRate != 25 {
		t.Errorf("mail puts %v and deletes %v a second, want 50 and 25", mail.PutRate, mail.DeleteRate)
	}
	f.fail = errors.New("the server has gone")
	next, cmd := m.Update(m.snapshot()())
	m = next.(model)
	if len(m.shown) != 5 || !strings.Contains(m.plain(), "the server has gone") || cmd == nil {
		t.Errorf("after an error the screen is:\n%s", m.plain())
	}
}

// The cursor stays on its tube when the order changes, and on the screen.
func TestCursor(t *testing.T) {
	f := newFakeServer()
	f.tubes = nil
	for i := range 100 {
		f.tubes = append(f.tubes, Tube{Name: fmt.Sprintf("tube%02d", i), Ready: uint64(i)})
	}
	m := newModel(f, "a", time.Second)
	next, _ := m.Update(m.snapshot()())
	m = next.(model)
	m.sort = name
	m.arrange()
	m.moveTo(95)
	m.sort = 2 // by ready
	m.arrange()
	if m.selected != "tube95" || m.cursor != 4 || m.cursor < m.top || m.cursor >= m.top+m.rows() {
		t.Errorf("the cursor is on %s, line %d, the first on the screen is %d", m.selected, m.cursor, m.top)
	}
	f.tubes = f.tubes[:3]
	next, _ = m.Update(m.snapshot()())
	if m = next.(model); m.current() == nil || m.cursor < m.top {
		t.Errorf("when most tubes have gone the cursor is on line %d, the first is %d", m.cursor, m.top)
	}
	f.tubes = nil
	next, _ = m.Update(m.snapshot()())
	if m = next.(model); m.current() != nil || !strings.Contains(m.plain(), "no tube has such a name") {
		t.Errorf("without tubes:\n%s", m.plain())
	}
}
