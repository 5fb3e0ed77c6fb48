package top

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/health"
)

func TestScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 30}, {60, 8}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			name := func(what string) string { return fmt.Sprintf("%s-%dx%d", what, size[0], size[1]) }
			s := show(t, newFakeServer(), size[0], size[1])
			s.wait("default")
			s.golden(name("tubes"))
			s.press("ss") // sort by name, then by ready
			s.wait("vREADY")
			s.golden(name("by-ready"))
			s.press("?")
			s.wait("any key: back")
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
	s.wait("pause mail for 1h0m? Workers get no jobs from it. y/n")
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
	s.press("K")
	s.wait("make 3 of the 3 buried jobs of reports ready? y/n")
	s.golden("kick")
	s.press("n")
	s.wait("nothing was done")

	s.press("\x1b[F") // end
	s.press("K")
	s.wait("übergrößen has no jobs to kick")
	s.press("kkk") // go one line up
	s.wait("> thumbnails")
	s.press("p")
	s.wait("end the pause of thumbnails-of-all-the-pictures-that-were-ever-sent, which has 59m3s left? y/n")
	s.press("y")
	s.wait("is no longer paused")
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
	s.wait("vPAUSED")
	s.press("q")
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	want := []string{"pause mail 1h0m0s", "kick mail 100",
		"pause thumbnails-of-all-the-pictures-that-were-ever-sent 0s",
		"look thumbnails-of-all-the-pictures-that-were-ever-sent ready",
		"look thumbnails-of-all-the-pictures-that-were-ever-sent delayed",
		"look thumbnails-of-all-the-pictures-that-were-ever-sent ready",
		"look thumbnails-of-all-the-pictures-that-were-ever-sent buried"}
	if diff := cmp.Diff(want, f.did); diff != "" {
		t.Errorf("the keys did something else (- want, + did):\n%s", diff)
	}
}

// Jobs that were buried since the start of the view are a bad finding.
func TestAlarms(t *testing.T) {
	f := newFakeServer()
	m := newModel(f, "a", time.Second)
	m.asks()
	if strings.Contains(m.plain(), "!reports") {
		t.Errorf("nothing was buried yet:\n%s", m.plain())
	}
	f.tubes[2].Jobs.Buried = 45
	f.tubes = append(f.tubes, Tube{Tube: admin.Tube{Name: "zz", Jobs: admin.JobCounts{Buried: 7, Ready: 1}}})
	m.asks()
	for _, want := range []string{"!reports", "!zz", "a second: 50 put, 25 deleted, 2.0 timed out"} {
		if !strings.Contains(m.plain(), want) {
			t.Errorf("the screen has no %q:\n%s", want, m.plain())
		}
	}
}

// Tubes that need attention come first, are marked without colour, and show their
// problem.
func TestAttention(t *testing.T) {
	f := newFakeServer()
	m := newModel(f, "a", time.Second)
	m.width = 120
	m.asks()
	f.tubes = append(f.tubes, Tube{Tube: admin.Tube{Name: "zz", Jobs: admin.JobCounts{Buried: 2}}})
	m.asks()
	if m.shown[0].Name != "zz" {
		t.Errorf("the first is %s", m.shown[0].Name)
	}
	for _, want := range []string{"\n !zz ", "in 6 tubes, 3 findings", "reports: 3 buried jobs"} {
		if !strings.Contains(m.plain(), want) {
			t.Errorf("the screen has no %q:\n%s", want, m.plain())
		}
	}
}

// A server without an API reports no findings. The view derives them from its own data.
func TestFindings(t *testing.T) {
	for want, tube := range map[string]Tube{
		"":                 {Tube: admin.Tube{Jobs: admin.JobCounts{Ready: 1}, Watching: 1}},
		"buried":           {Tube: admin.Tube{Jobs: admin.JobCounts{Buried: 1}}, buriedMore: 1},
		"buried unwatched": {Tube: admin.Tube{Jobs: admin.JobCounts{Ready: 1, Buried: 1}}},
		"paused":           {Tube: admin.Tube{Jobs: admin.JobCounts{Ready: 1}, PauseLeft: 1}},
	} {
		var got []string
		tube.look(time.Minute)
		for _, f := range tube.found {
			got = append(got, f.Kind)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%+v: %q, want %s", tube, got, want)
		}
	}
}

// The view shows exactly the findings that the server reports, including earlier ones.
func TestReportedFindings(t *testing.T) {
	f := newFakeServer()
	f.tubes = append(f.tubes, Tube{Tube: admin.Tube{Name: "zz"}}, Tube{Tube: admin.Tube{Name: "silent", Jobs: admin.JobCounts{Ready: 2}}})
	m := newModel(f, "a", time.Second)
	m.width = 120
	s, _ := f.Snapshot()
	s.Found = []health.Finding{
		{Kind: "draining", Severity: health.Warning, Text: "the server drains"},
		{Kind: "releases", Severity: health.Bad, Tube: "zz", Text: "9 jobs were released"},
		{Kind: "buried", Severity: health.Warning, Tube: "zz", Text: "3 buried jobs"},
	}
	next, _ := m.Update(snapshotMsg{s, nil})
	m = next.(model)
	for _, want := range []string{"\nthe server drains\n", "\n>!zz ", "\n  silent ", "in 7 tubes, 3 findings", "zz: 9 jobs were released"} {
		if !strings.Contains(m.plain(), want) {
			t.Errorf("the screen has no %q:\n%s", want, m.plain())
		}
	}
}

// The screen shows its age, even if the server does not answer.
func TestFreshness(t *testing.T) {
	f := newFakeServer()
	m := newModel(f, "a", time.Second)
	now := f.now
	m.now = func() time.Time { return now }
	if !strings.Contains(m.plain(), "a  asking ...") {
		t.Errorf("before the first answer:\n%s", m.plain())
	}
	m.asks()
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

// A note disappears after a while. A snapshot does not hide it.
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
	m.asks()
	m.selected = "mail"
	m.arrange()
	key("p")
	send(key("y")())
	if !strings.Contains(m.plain(), "mail is paused for 1h0m") {
		t.Errorf("after p and y:\n%s", m.plain())
	}
	key("p")
	key("n")
	now = now.Add(noteTime + time.Second)
	send(clockMsg{})
	if strings.Contains(m.plain(), "nothing was done") {
		t.Errorf("an old note is still shown:\n%s", m.plain())
	}
	send(doneMsg{err: errors.New("no such right")})
	m.asks()
	if !strings.Contains(m.plain(), "no such right") {
		t.Errorf("a snapshot hid the error of an action:\n%s", m.plain())
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 59 * time.Second: "59s", 59*time.Minute + 59*time.Second: "59m59s", time.Hour: "1h0m", 99*time.Hour + 59*time.Minute + time.Second: "99h59m",
		100 * time.Hour: "4d", 9999 * 24 * time.Hour: "9999d",
	} {
		if got := age(d); got != want || len(got) > 6 {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

// TestRates checks that rates appear with the second snapshot, and an error if the server
// does not answer the third.
func TestRates(t *testing.T) {
	f := newFakeServer()
	m := newModel(f, "a", time.Second)
	for range 2 {
		m.asks()
	}
	if mail := m.shown[slices.IndexFunc(m.shown, func(t Tube) bool { return t.Name == "mail" })]; mail.putRate != 50 || mail.deleteRate != 25 {
		t.Errorf("mail puts %v and deletes %v a second, want 50 and 25", mail.putRate, mail.deleteRate)
	}
	f.fail = errors.New("the server is unreachable")
	next, cmd := m.Update(m.snapshot()())
	m = next.(model)
	if len(m.shown) != 5 || !strings.Contains(m.plain(), "the server is unreachable") || cmd == nil {
		t.Errorf("after an error the screen is:\n%s", m.plain())
	}
}

// The cursor stays on its tube, and on the screen, when the order changes.
func TestCursor(t *testing.T) {
	f := newFakeServer()
	f.tubes = nil
	for i := range 100 {
		f.tubes = append(f.tubes, Tube{Tube: admin.Tube{Name: fmt.Sprintf("tube%02d", i), Jobs: admin.JobCounts{Ready: uint64(i)}}})
	}
	m := newModel(f, "a", time.Second)
	m.asks()
	m.sort = name
	m.arrange()
	m.moveTo(95)
	m.sort = 2 // sort by ready
	m.arrange()
	if m.selected != "tube95" || m.cursor != 4 || m.cursor < m.top || m.cursor >= m.top+m.rows() {
		t.Errorf("the cursor is on %s, line %d, the first on the screen is %d", m.selected, m.cursor, m.top)
	}
	f.tubes = f.tubes[:3]
	m.asks()
	if m.current() == nil || m.cursor < m.top {
		t.Errorf("after most tubes were removed, the cursor is on line %d, the first line is %d", m.cursor, m.top)
	}
	f.tubes = nil
	m.asks()
	if m.current() != nil || !strings.Contains(m.plain(), "no tube has such a name") {
		t.Errorf("without tubes:\n%s", m.plain())
	}
}
