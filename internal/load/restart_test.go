package load

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func TestCompareRestart(t *testing.T) {
	s := beanstalkd(t)
	s.Command = append(s.Command, "-b", "{dir}")
	a, b := s, s
	a.Name, b.Name = "a", "b"
	var turns []string
	r, err := CompareRestart(t.Context(), RestartOptions{
		A: a, B: b, Jobs: 100, Rounds: 2,
		Progress: func(server string, _ time.Duration) { turns = append(turns, server) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(turns, " "); got != "a b a b" {
		t.Errorf("turns %q", got)
	}
	for _, s := range []RestartSide{r.A, r.B} {
		if len(s.Took) != 2 || len(s.Peaks) != 2 || s.Median <= 0 || s.BytesPerJob < 64 {
			t.Errorf("side %+v", s)
		}
	}
}

// A server that forgets its jobs in a crash has not restarted, however soon it
// answers.
func TestRestartWithoutTheJobs(t *testing.T) {
	s := beanstalkd(t)
	_, err := CompareRestart(t.Context(), RestartOptions{A: s, B: s, Jobs: 10, Rounds: 1})
	if err == nil || !strings.Contains(err.Error(), "look for the jobs after the restart") {
		t.Errorf("error %v", err)
	}
}

// restart is one with figures chosen for their looks.
func restart() Restart {
	const mib = 1 << 20
	r := Restart{
		Jobs: 1_000_000,
		A: RestartSide{
			Name: "old", BytesPerJob: 241, SteadyRSS: 200 * mib,
			Took:  []time.Duration{4 * time.Second, 2 * time.Second},
			Peaks: []int64{200 * mib, 220 * mib},
		},
		B: RestartSide{
			Name: "new", BytesPerJob: 168,
			Took:  []time.Duration{time.Second, time.Second},
			Peaks: []int64{100 * mib, 110 * mib},
		},
	}
	r.sum()
	return r
}

func TestRestartTables(t *testing.T) {
	r := restart()
	for want, write := range map[string]func(*bytes.Buffer) error{
		`| 1,000,000 jobs | time to first reply | RSS before the crash | peak RSS of the restart | peak / before | disk bytes per job |
|---|---|---|---|---|---|
| old | 3.00 s | 200.0 MiB | 210.0 MiB | 1.05 (1.00..1.10) | 241 |
| new | 1.00 s | - | 105.0 MiB | - | 168 |
| ratio (min..max) | 0.38 (0.25..0.50) |  | 0.50 (0.50..0.50) |  |  |
`: func(b *bytes.Buffer) error { return r.WriteMarkdown(b) },
		`    1,000,000 jobs  time to first reply  RSS before the crash  peak RSS of the restart      peak / before  disk bytes per job
               old               3.00 s             200.0 MiB                210.0 MiB  1.05 (1.00..1.10)                 241
               new               1.00 s                     -                105.0 MiB                  -                 168
  ratio (min..max)    0.38 (0.25..0.50)                              0.50 (0.50..0.50)                                       
`: func(b *bytes.Buffer) error { return r.WriteTable(b) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("got\n%s\nwant\n%s", &b, want)
		}
	}
}

// What a server writes can be read while it runs, and its environment be added to.
func TestServerOutputAndEnvironment(t *testing.T) {
	s := thisResponder(t)
	var out bytes.Buffer
	s.Env, s.Output = []string{"BEANPOLE_LOAD_TEST=is heard"}, &out
	s.Command = append([]string{"sh", "-c", `echo "$BEANPOLE_LOAD_TEST"; echo too >&2; exec "$0" "$1"`}, s.Command...)
	p, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if u, ok := p.Usage(); ok && (u.PID != p.PID || u.RSS <= 0) {
		t.Errorf("usage %+v", u)
	}
	p.Stop()
	if got := out.String(); got != "is heard\ntoo\n" {
		t.Errorf("output %q", got)
	}
	if p.Died() == nil {
		t.Error("a process that was stopped is said to live")
	}
}

func TestDialogEndsWithItsServer(t *testing.T) {
	s := thisResponder(t)
	p, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	d, err := p.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	if r, err := d.Receive(); err == nil {
		t.Errorf("a reply from a dead server: %v", r.Kind)
	}
}
