package policy

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
)

func set(t *testing.T, configs ...Config) *Set {
	t.Helper()
	s, err := New(configs)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type values map[string]any

// For each setting, the most specific pattern with that setting applies.
func TestMerge(t *testing.T) {
	s := set(t,
		Config{[]string{"mail"}, values{"max-attempts": int64(2)}},
		Config{[]string{"*"}, values{"max-attempts": int64(9), "max-releases": int64(9), "retry-delay": "9s"}},
		Config{[]string{"mail-*", "ma*"}, values{"max-attempts": int64(3), "max-releases": int64(3)}},
		Config{[]string{"mail-?"}, values{"max-attempts": int64(4)}},
		Config{[]string{"mail-out"}, values{"max-releases": int64(0)}},
	)
	for tube, want := range map[string]string{
		"mail":     "2/1 3/3 9s/2",
		"mail-x":   "4/4 3/3 9s/2",
		"mail-xy":  "3/3 3/3 9s/2",
		"mail-out": "3/3 0/5 9s/2",
		"mad":      "3/3 3/3 9s/2",
		"other":    "9/2 9/2 9s/2",
	} {
		var got []string
		for _, v := range s.Explain(tube) {
			switch v.Name {
			case "max-attempts", "max-releases", "retry-delay":
				got = append(got, fmt.Sprintf("%s/%d", v.Text, v.Rule.Number))
			case "max-timeouts":
				if v.Rule != nil || v.Text != v.Setting.Default {
					t.Errorf("%s: a setting of no policy is %+v", tube, v)
				}
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", tube, got, want)
		}
	}
	if s.Of("mail-x") != s.Of("mail-y") || s.Of("mail-x") == s.Of("mail-xy") {
		t.Error("tubes must share a policy if and only if the same rules match them")
	}
	if set(t, Config{[]string{"a"}, values{"max-attempts": int64(2)}}).Of("b") != nil {
		t.Error("a tube without a policy has one")
	}
}

// All settings reach the engine, and missing settings have their defaults.
func TestOf(t *testing.T) {
	s := set(t, Config{[]string{"all"}, values{
		"max-attempts": int64(2), "max-timeouts": "3", "max-releases": int64(4), "exhausted": "move", "dead-tube": "dead", "retry-delay": "1m30s",
		"retry-factor": 1.5, "retry-max": int64(7200), "retry-jitter": "0", "retry-on": []any{"close", "release"}, "snooze": "10m",
		"ttl": "48h", "expired": "bury", "keep-buried": "72h", "max-reserved": int64(5), "rate": "90/m", "burst": int64(3),
	}}, Config{[]string{"few"}, values{"retry-delay": "5s"}})
	const second = 1e9
	want := engine.Policy{MaxAttempts: 2, MaxTimeouts: 3, MaxReleases: 4, Exhausted: engine.MoveExhausted, DeadTube: "dead",
		RetryDelay: 90 * second, RetryMax: 7200 * second, RetryFactor: 1.5, RetryOn: engine.Lost | engine.Release, Snooze: 600 * second, TTL: 172800 * second, BuryAtTTL: true, KeepBuried: 259200 * second, MaxReserved: 5, Interval: 666_666_666, Burst: 3}
	if got := *s.Of("all"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	want = engine.Policy{DeadTube: "{tube}.dead", RetryDelay: 5 * second, RetryMax: 3600 * second, RetryFactor: 2, RetryJitter: 0.25,
		RetryOn: engine.Timeout | engine.Lost | engine.Release}
	if got := *s.Of("few"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestRates(t *testing.T) {
	for text, want := range map[any]int64{"100/s": 1e7, "1/d": 86400e9, "0.5/s": 2e9, int64(4): 25e7, "0": 0, "0/m": 0, 0.1: 1e10, "5/m": 12e9, "1/h": 3600e9} {
		p := set(t, Config{[]string{"a"}, values{"rate": text}}).Of("a")
		if p.Interval < want-1 || p.Interval > want {
			t.Errorf("%v: an interval of %d ns, want %d", text, p.Interval, want)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, test := range []struct {
		tubes    []string
		settings values
		want     string
	}{
		{nil, values{"max-attempts": int64(2)}, `policy 1: no tubes; use "*" for every tube`},
		{[]string{"a"}, nil, "policy 1: it has no setting"},
		{[]string{"a", "b c"}, values{"max-attempts": int64(2)}, `policy 1: "b c" matches no tube: want 1 to 200 characters`},
		{[]string{"a"}, values{"max-attempts": ""}, `or 0, not ""`},
		{[]string{"a"}, values{"unique": "/a~2"}, "unique: want body, line, a list of JSON pointers"},
		{[]string{"a"}, values{"max-attempt": int64(2)}, `policy 1: unknown setting "max-attempt"`},
		{[]string{"a"}, values{"max-attempts": int64(10001)}, "policy 1: max-attempts: want a whole number from 1 to 10000, or 0, not 10001"},
		{[]string{"a"}, values{"max-attempts": 2.5}, "or 0, not 2.5"},
		{[]string{"a"}, values{"max-timeouts": int64(-1)}, "or 0, not -1"},
		{[]string{"a"}, values{"max-timeouts": true}, "or 0, not true"},
		{[]string{"a"}, values{"max-releases": "many"}, "or 0, not many"},
		{[]string{"a"}, values{"exhausted": "burn"}, "exhausted: want one of bury, delete, move, not burn"},
		{[]string{"a"}, values{"dead-tube": "-x"}, "dead-tube: want the name of a tube, of at most 200 characters, with {tube} at most once, not -x"},
		{[]string{"a"}, values{"dead-tube": strings.Repeat("x", 201)}, "dead-tube: want the name of a tube"},
		{[]string{"a"}, values{"dead-tube": "{tube}{tube}"}, "with {tube} at most once"},
		{[]string{"a"}, values{"unique": "/a, /a"}, "unique: want body, line"},
		{[]string{"a"}, values{"unique": "/a\x1b[31m"}, `unique: the value has the control character '\x1b'; remove it`},
		{[]string{"a"}, values{"unique": []any{"/a", "/b\nx=1"}}, `the control character '\n'`},
		{[]string{"a"}, values{"retry-delay": "31d"}, "retry-delay: want a duration such as 30s or 7d, from 0s to 30 days, not 31d"},
		{[]string{"a"}, values{"retry-delay": "-1s"}, "not -1s"},
		{[]string{"a"}, values{"retry-factor": 11.0}, "retry-factor: want a number from 1 to 10, not 11"},
		{[]string{"a"}, values{"retry-factor": "NaN"}, "not NaN"},
		{[]string{"a"}, values{"retry-on": []any{"timeout", "crash"}}, "retry-on: want a list of timeout, close, release, not timeout, crash"},
		{[]string{"a"}, values{"retry-on": int64(1)}, "retry-on: want a list"},
		{[]string{"a"}, values{"ttl": "-1s"}, "ttl: want a duration such as 30s or 7d, from 0s to 3650 days, not -1s"},
		{[]string{"a"}, values{"expired": "move"}, "expired: want one of delete, bury, not move"},
		{[]string{"a"}, values{"rate": "5/y"}, "rate: want a rate such as 100/s, 5/m, 2/h or 1/d, up to 100000/s, or 0, not 5/y"},
		{[]string{"a"}, values{"rate": "100001/s"}, "not 100001/s"},
		{[]string{"a"}, values{"rate": "0.5/d"}, "not 0.5/d"},
		{[]string{"a"}, values{"rate": "-1"}, "not -1"},
		{[]string{"a"}, values{"rate": []any{}}, `not ""`},
		{[]string{"a"}, values{"burst": "NaN"}, "not NaN"},
	} {
		if _, err := New([]Config{{test.tubes, test.settings}}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v %v: %v, want %q", test.tubes, test.settings, err, test.want)
		}
	}
}

// There is a warning for each setting that has no effect or contradicts another setting,
// because that is probably a mistake.
func TestWarnings(t *testing.T) {
	for _, test := range []struct {
		configs []Config
		want    int
	}{
		{[]Config{{[]string{"mail"}, values{"max-attempts": int64(2), "exhausted": "move"}}}, 0},
		{[]Config{{[]string{"mail"}, values{"max-attempts": int64(2), "exhausted": "move", "dead-tube": "{tube}"}}}, 1},
		{[]Config{{[]string{"*"}, values{"exhausted": "move", "burst": int64(2)}}}, 2},                // alone, neither has an effect
		{[]Config{{[]string{"a"}, values{"ttl": "1h", "retry-delay": "1h", "retry-max": "1h"}}}, 2},   // there is no second try
		{[]Config{{[]string{"a"}, values{"ttl": "1h", "expired": "bury", "keep-buried": "1h"}}}, 1},   // buried and deleted at once
		{[]Config{{[]string{"a"}, values{"ttl": "2h", "retry-delay": "1h", "keep-buried": "1h"}}}, 0}, // for jobs that workers bury
	} {
		if got := set(t, test.configs...).Warnings(); len(got) != test.want {
			t.Errorf("%v: %q", test.configs, got)
		}
	}
}

// Each run-time setting overrides the same setting in the file, for all patterns. Among
// run-time settings the most specific pattern applies, regardless of the order in which
// they were made.
func TestWith(t *testing.T) {
	file := set(t, Config{[]string{"mail"}, values{"max-attempts": int64(9), "retry-delay": "9s"}}, Config{[]string{"*"}, values{"burst": int64(9)}})
	texts := map[string]string{"*": "max-attempts=2\nmax-releases=2\n", "m*": "max-attempts=3\n", "m*l": "max-attempts=4\n", "m??l": "max-attempts=5\n", "mailx": "max-attempts=6\n"}
	for range 20 {
		s := engine.Policies(file)
		for pattern, text := range texts { // in any order
			s = s.With(pattern, "max-attempts=1000\n").With(pattern, text)
		}
		for tube, want := range map[string]string{
			"mail":  "max-attempts=5 m??l, max-releases=2 *, retry-delay=9s policy 1, burst=9 policy 2",
			"mxl":   "max-attempts=4 m*l, max-releases=2 *, burst=9 policy 2",
			"mailx": "max-attempts=6 mailx, max-releases=2 *, burst=9 policy 2",
			"z":     "max-attempts=2 *, max-releases=2 *, burst=9 policy 2",
		} {
			var got []string
			for _, v := range s.(*Set).Explain(tube) {
				switch {
				case v.Rule != nil && v.Rule.Number > 0:
					got = append(got, fmt.Sprintf("%s=%s policy %d", v.Name, v.Text, v.Rule.Number))
				case v.Rule != nil:
					got = append(got, fmt.Sprintf("%s=%s %s", v.Name, v.Text, v.Rule.Pattern))
				}
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("%s: %s, want %s", tube, strings.Join(got, ", "), want)
			}
		}
		if p := s.Of("mail"); p.MaxAttempts != 5 || p.RetryDelay != 9e9 {
			t.Errorf("%+v", p)
		}
		for pattern := range texts {
			s = s.With(pattern, "")
		}
		if p := s.Of("mail"); p.MaxAttempts != 9 || len(s.(*Set).Rules()) != 2 {
			t.Errorf("all settings were removed: %+v", p)
		}
	}
	if s := file.With("x", "from-the-future=1\nmax-attempts=1e9\nburst=3\n").(*Set); s.Of("x").Burst != 3 || s.Of("x").MaxAttempts != 0 {
		t.Errorf("settings unknown to this version: %+v", s.Of("x"))
	}
}

func TestEdit(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	text, err := Edit("burst=1\nfrom-the-future=1\nmax-attempts=2\n", map[string]string{"max-attempts": " 7 ", "paused": "1h30m", "retry-on": "timeout, close"}, []string{"burst", "from-the-future", "rate"}, now)
	if want := "max-attempts=7\npaused=2027-01-15T09:30:00Z\nretry-on=timeout, close\n"; err != nil || text != want {
		t.Errorf("%v, got %q, want %q", err, text, want)
	}
	if text, _ := Edit("", map[string]string{"paused": "2s"}, nil, now.Add(700*time.Millisecond)); Parse(text)["paused"] != "2027-01-15T08:00:03Z" {
		t.Errorf("a pause of 2 s ends too early: %q", text)
	}
	if Parse(text)["retry-on"] != "timeout, close" {
		t.Error(Parse(text))
	}
	for _, test := range []struct{ name, value, want string }{
		{"max-attempt", "3", `unknown setting "max-attempt"; the settings are max-attempts, `}, {"max-attempts", "", "max-attempts: want a whole number"}, {"paused", "2027-01-15T07:59:59Z", "paused: 2027-01-15T07:59:59Z has passed"}, {"paused", "soon", "not soon; or for how long, such as 1h30m or 2d"},
		{"max-attempts", "3\nburst=1", `max-attempts: the value has the control character '\n'`}, {"unique", "/a\r\nb", `control character '\r'`}, {"unique", "/a\u0085b", `control character '\u0085'`}, {"unique", "/a\x7f", "control character"}, {"retry-on", strings.Repeat("close,", 50), "more than 256"}, {"exhausted", "bury\n", ""},
		{"dead-tube", "a b", "dead-tube: want the name of a tube"}, {"paused", "-5s", "paused: want yes, no"}, {"paused", "1960-01-01T00:00:00Z", "paused: want yes, no"},
	} {
		text, err := Edit("", map[string]string{test.name: test.value}, nil, now)
		if test.want == "" && (err != nil || strings.Count(text, "\n") != 1) || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s=%s: %q %v, want %q", test.name, test.value, text, err, test.want)
		}
	}
	if _, err := Edit("", nil, []string{"max-attempt"}, now); err == nil {
		t.Error("a missing setting can be unset")
	}
	for pattern, ok := range map[string]bool{"*": true, "mail-?": true, "a b": false, "": false, "-a": false, "*-": true, strings.Repeat("x", 201): false} {
		if (CheckPattern(pattern) == nil) != ok {
			t.Errorf("%q: %v", pattern, CheckPattern(pattern))
		}
	}
}

func TestPaused(t *testing.T) {
	for value, want := range map[any]int64{"no": 0, false: 0, "yes": math.MaxInt64, true: math.MaxInt64, "2027-01-15T08:00:00Z": 1_800_000_000e9, time.Unix(1_800_000_000, 0): 1_800_000_000e9} {
		if p := set(t, Config{[]string{"a"}, values{"paused": value}}).Of("a"); p.PausedUntil != want {
			t.Errorf("%v: %d", value, p.PausedUntil)
		}
	}
}

// Each combination of overlapping patterns has its own policy. A Set keeps a bounded
// number of them.
func TestPoliciesKept(t *testing.T) {
	settings := []string{"max-attempts", "max-timeouts", "max-releases", "retry-delay", "retry-factor", "retry-max", "retry-jitter",
		"snooze", "ttl", "keep-buried", "max-reserved", "rate", "burst", "paused"}
	configs := make([]Config, len(settings))
	for i, name := range settings {
		configs[i] = Config{[]string{fmt.Sprintf("u*%c*", 'a'+i)}, values{name: "1"}}
	}
	configs[13].Settings["paused"] = "yes"
	s := set(t, configs...)
	most := 0
	for n := range 1 << len(configs) {
		tube := []byte("u")
		for i := range configs {
			if n>>i&1 != 0 {
				tube = append(tube, 'a'+byte(i))
			}
		}
		if p := s.Of(string(tube)); (p == nil) != (n == 0) || p != nil && p.MaxAttempts != uint32(n%2) {
			t.Fatalf("the policy of %s is %+v", tube, p)
		}
		most = max(most, len(s.shared))
	}
	if most > maxShared || most < maxShared/2 {
		t.Errorf("%d policies were kept", most)
	}
}
