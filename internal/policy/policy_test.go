package policy

import (
	"fmt"
	"strings"
	"testing"

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

// The most specific pattern that has a setting counts for it.
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
				got = append(got, fmt.Sprintf("%s/%d", v.Text, v.Policy))
			case "max-timeouts":
				if v.Pattern != "" || v.Text != v.setting.Default {
					t.Errorf("%s: a setting of no policy is %+v", tube, v)
				}
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", tube, got, want)
		}
	}
	if s.Of("mail-x") != s.Of("mail-y") || s.Of("mail-x") == s.Of("mail-xy") {
		t.Error("tubes share a policy if the same rules are about them, and only then")
	}
	if set(t, Config{[]string{"a"}, values{"max-attempts": int64(2)}}).Of("b") != nil {
		t.Error("a tube that no policy is about has one")
	}
}

// What is set reaches the engine, and what is not is the default.
func TestOf(t *testing.T) {
	s := set(t, Config{[]string{"all"}, values{
		"max-attempts": int64(2), "max-timeouts": "3", "max-releases": int64(4), "exhausted": "move", "dead-tube": "dead", "retry-delay": "1m30s",
		"retry-factor": 1.5, "retry-max": int64(7200), "retry-jitter": "0", "retry-on": []any{"close", "release"},
		"max-reserved": int64(5), "rate": "90/m", "burst": int64(3),
	}}, Config{[]string{"few"}, values{"retry-delay": "5s"}})
	const second = 1e9
	want := engine.Policy{MaxAttempts: 2, MaxTimeouts: 3, MaxReleases: 4, Exhausted: engine.MoveExhausted, DeadTube: "dead",
		RetryDelay: 90 * second, RetryMax: 7200 * second, RetryFactor: 1.5, RetryOn: engine.Lost | engine.Release, MaxReserved: 5, Interval: 666_666_666, Burst: 3}
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
		{nil, values{"max-attempts": int64(2)}, `policy 1: it has no tubes ("*" is every tube)`},
		{[]string{"a"}, nil, "policy 1: it has no setting"},
		{[]string{"a"}, values{"max-attempt": int64(2)}, `policy 1: there is no setting "max-attempt"`},
		{[]string{"a"}, values{"max-attempts": int64(1)}, "policy 1: max-attempts: want a whole number from 2 to 10000, or 0, not 1"},
		{[]string{"a"}, values{"max-attempts": 2.5}, "or 0, not 2.5"},
		{[]string{"a"}, values{"max-timeouts": int64(-1)}, "or 0, not -1"},
		{[]string{"a"}, values{"max-timeouts": true}, "or 0, not true"},
		{[]string{"a"}, values{"max-releases": "many"}, "or 0, not many"},
		{[]string{"a"}, values{"exhausted": "burn"}, "exhausted: want one of bury, delete, move, not burn"},
		{[]string{"a"}, values{"dead-tube": "-x"}, "dead-tube: want the name of a tube, not -x"},
		{[]string{"a"}, values{"dead-tube": strings.Repeat("x", 201)}, "dead-tube: want the name of a tube"},
		{[]string{"a"}, values{"dead-tube": int64(5)}, "dead-tube: want the name of a tube, not 5"},
		{[]string{"a"}, values{"retry-delay": "31d"}, "retry-delay: want a duration such as 30s, from 0s to 30 days, not 31d"},
		{[]string{"a"}, values{"retry-delay": "-1s"}, "not -1s"},
		{[]string{"a"}, values{"retry-factor": 11.0}, "retry-factor: want a number from 1 to 10, not 11"},
		{[]string{"a"}, values{"retry-factor": "NaN"}, "not NaN"},
		{[]string{"a"}, values{"retry-on": []any{"timeout", "crash"}}, "retry-on: want a list of timeout, close, release, not [timeout crash]"},
		{[]string{"a"}, values{"retry-on": int64(1)}, "retry-on: want a list"},
		{[]string{"a"}, values{"rate": "5/y"}, "rate: want a rate such as 100/s, 5/m, 2/h or 1/d, up to 100000/s, or 0, not 5/y"},
		{[]string{"a"}, values{"rate": "100001/s"}, "not 100001/s"},
		{[]string{"a"}, values{"rate": "0.5/d"}, "not 0.5/d"},
		{[]string{"a"}, values{"rate": "-1"}, "not -1"},
		{[]string{"a"}, values{"rate": []any{}}, "not []"},
		{[]string{"a"}, values{"burst": "NaN"}, "not NaN"},
	} {
		if _, err := New([]Config{{test.tubes, test.settings}}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v %v: %v, want %q", test.tubes, test.settings, err, test.want)
		}
	}
}

// A dead tube that would be emptied into another one is probably not meant.
func TestWarnings(t *testing.T) {
	move := values{"max-attempts": int64(2), "exhausted": "move"}
	for _, test := range []struct {
		configs []Config
		want    int
	}{
		{[]Config{{[]string{"*"}, move}}, 1},
		{[]Config{{[]string{"mail"}, move}}, 0},
		{[]Config{{[]string{"mail-*"}, values{"max-attempts": int64(2), "exhausted": "move", "dead-tube": "dead"}}}, 0},
		{[]Config{{[]string{"*"}, move}, {[]string{"*.dead"}, values{"exhausted": "bury"}}}, 0},
		{[]Config{{[]string{"*.dead"}, values{"exhausted": "bury"}}, {[]string{"*"}, move}}, 2}, // both begin with a *: the later one counts
		{[]Config{{[]string{"*"}, values{"exhausted": "move"}}}, 0},
	} {
		if got := set(t, test.configs...).Warnings(); len(got) != test.want {
			t.Errorf("%v: %q", test.configs, got)
		}
	}
}
