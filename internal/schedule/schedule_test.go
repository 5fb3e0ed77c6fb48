package schedule

import (
	"archive/zip"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// TestZones compares the names of zones with those of Go.
func TestZones(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	all, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib/time/zoneinfo.zip"))
	if err != nil {
		t.Skip("this Go has no list of zones:", err)
	}
	defer all.Close()
	var names []string
	for _, f := range all.File {
		if !strings.HasSuffix(f.Name, "/") {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	if text := strings.Join(names, "\n") + "\n"; text != zoneNames {
		t.Error("zones.txt differs from the zones of Go")
	}
}

// TestBadSettings checks the errors for wrong settings.
func TestBadSettings(t *testing.T) {
	for _, c := range []struct{ setting, value, want string }{
		{"cron", "30 25 * * *", `cron: column 4: bad hour "25"; want a number from 0 to 23`},
		{"cron", "30 3 1-5,x * *", `cron: column 10: bad day of month "x"; want a number from 1 to 31`},
		{"cron", "30 3 * jax *", `cron: column 8: bad month "jax"; want a number from 1 to 12, or a name from jan to dec`},
		{"cron", "30 3 * *", `cron: column 9: the day of week is missing; want minute, hour, day of month, month and day of week`},
		{"cron", "0 30 3 * * *", `cron: column 3: bad hour "30"; want a number from 0 to 23`},
		{"cron", "0 3 * * * 2027", `cron: column 11: a sixth field; want minute, hour, day of month, month and day of week`},
		{"cron", "1--100000000 * * * *", `cron: column 3: bad minute "-100000000"; want a number from 0 to 59`},
		{"cron", "0-59/100000000000000000000 * * * *", `cron: column 6: bad step "10000000000000000000" of the minute; want a number from 1 to 59`},
		{"cron", "50-10 * * * *", `cron: column 1: the range 50-10 of the minute ends before it starts`},
		{"cron", "0 0 30,31 2 *", `cron: column 5: no month has such a day`},
		{"cron", "@reboot", `cron: column 1: unknown name "@reboot"; want @hourly, @daily, @weekly, @monthly, @yearly or five fields`},
		{"cron", strings.Repeat("1,", 200), `cron: column 201: the expression has more than 200 characters`},
		{"every", "5m", "cron: want one of cron and every"},
		{"timezone", "Europe/Berln", `timezone: unknown time zone "Europe/Berln"; did you mean "Europe/Berlin"?`},
		{"timezone", "america/new york", `timezone: unknown time zone "america/new york"; did you mean "America/New_York"?`},
		{"timezone", "../../etc/passwd", `timezone: unknown time zone "../../etc/passwd"; did you mean "America/Scoresbysund"?`},
		{"tube", "a b", `tube: want the name of a tube, not "a b"`},
		{"priority", "-1", `priority: want a number from 0 to 4294967295, not "-1"`},
		{"ttr", "1.5s", "ttr: want whole seconds, at most 49710d"},
		{"delay", "5", "delay: want a time with its unit: 5s is seconds, 5m minutes, 5h hours, 5d days"},
		{"missed", "twice", `missed: want once or skip or all, not "twice"`},
		{"body", strings.Repeat("x", maxBody+1), "body: want UTF-8 text of at most 16384 bytes"},
		{"body", "\xff", "body: want UTF-8 text of at most 16384 bytes"},
		{"colour", "red", "colour: unknown setting; want cron, every, timezone, tube, body, priority, delay, ttr, missed, overlap"},
	} {
		settings := map[string]string{"cron": "0 3 * * *", "tube": "reports", c.setting: c.value}
		if _, err := Compile("nightly", settings); err == nil || err.Error() != c.want {
			t.Errorf("%s = %.40q: %v, want %s", c.setting, c.value, err, c.want)
		}
	}
	for _, every := range []string{"999ms", "1500ms", "367d", "-1s", "x"} {
		if _, err := Compile("n", map[string]string{"every": every, "tube": "t"}); err == nil {
			t.Errorf("every = %s is accepted", every)
		}
	}
	for _, name := range []string{"", "a b", "-a", strings.Repeat("n", 101)} {
		if _, err := Compile(name, map[string]string{"every": "1s", "tube": "t"}); err == nil {
			t.Errorf("the name %q is accepted", name)
		}
	}
}

// TestText checks that the stored text contains the settings.
func TestText(t *testing.T) {
	settings := map[string]string{"cron": "@daily", "tube": "t", "body": "a=\"b\"\n\nc\x00 {time} {name}", "timezone": "Asia/Kathmandu", "ttr": "90s", "priority": "7"}
	if got := Parse(Text(settings)); !maps.Equal(got, settings) {
		t.Errorf("%q", got)
	}
	s, err := Compile("nightly", settings)
	if err != nil {
		t.Fatal(err)
	}
	want := engine.Spec{Pri: 7, TTR: 90}
	if body := string(s.Body(0)); body != "a=\"b\"\n\nc\x00 1970-01-01T05:30:00+05:30 nightly" || s.Spec != want {
		t.Errorf("%q, %+v", body, s.Spec)
	}
}

// TestDaylightSaving lists the runs around changes of the local time.
func TestDaylightSaving(t *testing.T) {
	for _, c := range []struct{ cron, zone, after, want string }{
		// On this day, 02:00 to 03:00 does not exist.
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00+01:00", "03-29T03:00+02:00 03-30T02:30+02:00"},
		{"*/30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00+01:00", "03-29T03:00+02:00 03-30T02:00+02:00 03-30T02:30+02:00"},
		{"*/30 * * * *", "Europe/Berlin", "2026-03-29T01:00:00+01:00", "03-29T01:30+01:00 03-29T03:00+02:00 03-29T03:30+02:00"},
		{"0 3 * * *", "Europe/Berlin", "2026-03-28T12:00:00+01:00", "03-29T03:00+02:00 03-30T03:00+02:00"},
		{"30 2 * * *", "America/New_York", "2026-03-07T12:00:00-05:00", "03-08T03:00-04:00 03-09T02:30-04:00"},
		// On this day, 02:00 to 03:00 occurs twice.
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00+02:00", "10-25T02:30+02:00 10-26T02:30+01:00"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T02:10:00+01:00", "10-26T02:30+01:00"},
		{"*/30 * * * *", "Europe/Berlin", "2026-10-25T02:00:00+02:00", "10-25T02:30+02:00 10-25T03:00+01:00"},
		{"0 3 * * *", "Europe/Berlin", "2026-10-24T12:00:00+02:00", "10-25T03:00+01:00 10-26T03:00+01:00"},
		{"30 1 * * *", "America/New_York", "2026-10-31T12:00:00-04:00", "11-01T01:30-04:00 11-02T01:30-05:00"},
		// These changes are half an hour long, in the southern hemisphere, at midnight,
		// or skip a whole day.
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30", "10-04T02:30+11:00 10-05T02:15+11:00"},
		{"45 1 * * *", "Australia/Lord_Howe", "2027-04-03T12:00:00+11:00", "04-04T01:45+11:00 04-05T01:45+10:30"},
		{"30 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00+02:00", "04-24T01:00+03:00 04-25T00:30+03:00"},
		{"0 */12 * * *", "America/Chicago", "2040-12-30T12:00:00-06:00", "12-31T00:00-06:00 12-31T12:00-06:00 01-01T00:00-06:00"},
		{"0 12 * * *", "Pacific/Apia", "2011-12-29T11:00:00-10:00", "12-29T12:00-10:00 12-31T00:00+14:00 12-31T12:00+14:00"},
		// Here the local time does not change.
		{"0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "02-29T00:00Z"},
		{"0 0 13 * fri", "UTC", "2026-11-01T00:00:00Z", "11-06T00:00Z 11-13T00:00Z 11-20T00:00Z"},
		{"0 0 */2 * mon", "UTC", "2026-11-01T00:00:00Z", "11-09T00:00Z 11-23T00:00Z"},
		{"0 9-17/4 * * mon-fri,7", "UTC", "2026-11-27T12:00:00Z", "11-27T13:00Z 11-27T17:00Z 11-29T09:00Z"},
		{"0 0 * * fri-sun", "UTC", "2026-11-27T12:00:00Z", "11-28T00:00Z 11-29T00:00Z 12-04T00:00Z"},
		{"5/20 0 1 1 *", "UTC", "2026-12-31T12:00:00Z", "01-01T00:05Z 01-01T00:25Z 01-01T00:45Z 01-01T00:05Z"},
		{"@weekly", "UTC", "2026-11-27T12:00:00Z", "11-29T00:00Z 12-06T00:00Z"},
	} {
		zone, err := ZoneOf(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parseCron(c.cron, zone)
		if err != nil {
			t.Fatal(err)
		}
		after, _ := time.Parse(time.RFC3339, c.after)
		at := after.Unix()
		var got []string
		for range strings.Fields(c.want) {
			at = parsed.next(at)
			got = append(got, time.Unix(at, 0).In(zone).Format("01-02T15:04Z07:00"))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s in %s after %s: %s, want %s", c.cron, c.zone, c.after, text, c.want)
		}
	}
}

// drawCron returns a random expression.
func drawCron(rng *rand.Rand) string {
	var words []string
	for _, f := range fields {
		value := func() int { return f.min + rng.IntN(f.max-f.min+1) }
		a, b := value(), value()
		words = append(words, []string{
			"*", "*", fmt.Sprint(a), fmt.Sprintf("%d,%d", a, b), fmt.Sprintf("%d-%d", min(a, b), max(a, b)), fmt.Sprintf("*/%d", max(1, a)), fmt.Sprintf("%d-%d/%d", min(a, b), f.max, max(1, b)),
		}[rng.IntN(7)])
	}
	return strings.Join(words, " ")
}

// naiveRuns returns the runs between two times. It checks each minute. A local minute
// runs when it first occurs, and a skipped minute runs right after the gap.
func naiveRuns(c *cron, from, to int64) (runs []int64) {
	minute := func(local time.Time) bool {
		on := func(bits uint64, n int) bool { return bits&(1<<n) != 0 }
		day, weekday := on(c.days, local.Day()), on(c.weekdays, int(local.Weekday()))
		return on(c.minutes, local.Minute()) && on(c.hours, local.Hour()) && on(c.months, int(local.Month())) && (day && weekday || c.either && (day || weekday))
	}
	const margin = 26 * 60 * 60 // so that a local time before from that occurs again is skipped
	latest := time.Time{}       // latest local minute that has occurred
	for at := from/60*60 - margin; at <= to; at += 60 {
		t := time.Unix(at, 0).In(c.zone)
		local := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), 0, 0, time.UTC)
		if latest.IsZero() {
			latest = local.Add(-time.Minute)
		}
		due := false
		for latest.Before(local) {
			latest = latest.Add(time.Minute)
			due = due || minute(latest)
		}
		if due && at > from {
			runs = append(runs, at)
		}
	}
	return runs
}

// TestTimes compares the runs of random expressions in random zones with a search of each
// minute. The months include changes of the local time.
func TestTimes(t *testing.T) {
	seeds.Each(t, 5, func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		names := zoneList()
		zone, err := ZoneOf(names[rng.IntN(len(names))])
		if err != nil {
			t.Fatal(err)
		}
		from := time.Date(1975+rng.IntN(75), time.Month(1+rng.IntN(12)), 1, 0, 0, 0, 0, time.UTC).Unix() + rng.Int64N(86400)
		for range 10 {
			expression := drawCron(rng)
			c, err := parseCron(expression, zone)
			if err != nil {
				continue // for example the 31st of February
			}
			to := from + rng.Int64N(120*86400)
			want := naiveRuns(c, from, to)
			var got []int64
			for at := c.next(from); at <= to; at = c.next(at) {
				got = append(got, at)
			}
			latest := c.due(from, to, 50)
			slices.Reverse(latest)
			if !slices.Equal(got, want) || !slices.Equal(latest, want[max(0, len(want)-50):]) {
				t.Fatalf("%s in %v from %d to %d:\nnext %v\ndue %v\nwant %v", expression, zone, from, to, got, latest, want)
			}
		}
	})
}

func FuzzCron(f *testing.F) {
	for _, text := range []string{"30 3 * * *", "*/5 9-17 * * mon-fri", "@daily", "0 0 29 2 *", "1--100000000 * * * *", "59 23 31 12 7"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCron(text, time.UTC)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "column ") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		at := c.next(1_790_000_000)
		if at <= 1_790_000_000 || !slices.Equal(c.due(at-1, at, 5), []int64{at}) {
			t.Errorf("%q: next is %d, due %v", text, at, c.due(at-1, at, 5))
		}
	})
}
