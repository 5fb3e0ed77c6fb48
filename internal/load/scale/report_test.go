package scale

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/beanpole-mq/beanpole/internal/load"
)

// report is one with figures chosen for their looks.
func report() Report {
	e := experiment{
		name:  "looks",
		title: func(*Options) string { return "how it looks" },
		figures: []figure{
			{name: "RSS", unit: Bytes, target: ratioAtMost(0.7)},
			{name: "p99", unit: Nanoseconds, target: atMost(20e6)},
			{name: "slower", unit: Times, target: atMost(2)},
			{name: "throughput", unit: PerSecond},
			{name: "pause", unit: Nanoseconds, target: atMost(1e6)},
		},
	}
	r := newReport(&e, &Options{Rounds: 2}, load.Server{Name: "old"}, load.Server{Command: []string{"/bin/new"}})
	r.add(0, map[string]float64{"RSS": 2 << 20, "p99": 1e6, "slower": 1, "throughput": 1234567})
	r.add(1, map[string]float64{"RSS": 1 << 20, "p99": 30e6, "slower": 1.5, "throughput": 0})
	r.add(0, map[string]float64{"RSS": 2 << 20, "p99": 2e6, "slower": 1, "throughput": 0})
	r.add(1, map[string]float64{"RSS": 1 << 20, "p99": 40e6, "slower": 2, "throughput": 5})
	r.sum()
	return r
}

func TestWriteMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := WriteMarkdown(&b, []Report{report(), {Name: "second", Title: "none", A: "a", B: "b"}}); err != nil {
		t.Fatal(err)
	}
	const want = `### looks: how it looks

| median (min..max) | old | new | ratio | target |
|---|---|---|---|---|
| RSS | 2.0 MiB | 1.0 MiB | 0.50 | ratio <= 0.70: met |
| p99 | 1.50 ms (1.00 ms..2.00 ms) | 35.0 ms (30.0 ms..40.0 ms) | 25.00 (20.00..30.00) | <= 20.0 ms: missed |
| slower | 1.00 times | 1.75 times (1.50 times..2.00 times) | - | <= 2.00 times: met |
| throughput | 617,284/s (0/s..1,234,567/s) | 3/s (0/s..5/s) | 0.00 | - |
| pause | - | - | - | <= 1.00 ms: unknown |

### second: none

| median (min..max) | a | b | ratio | target |
|---|---|---|---|---|
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWriteTable(t *testing.T) {
	r := report()
	r.Figures = r.Figures[:2]
	var b bytes.Buffer
	if err := WriteTable(&b, []Report{r}); err != nil {
		t.Fatal(err)
	}
	const want = `looks: how it looks
  median (min..max)  old                         new                         ratio                 target
  RSS                2.0 MiB                     1.0 MiB                     0.50                  ratio <= 0.70: met
  p99                1.50 ms (1.00 ms..2.00 ms)  35.0 ms (30.0 ms..40.0 ms)  25.00 (20.00..30.00)  <= 20.0 ms: missed
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestJSON(t *testing.T) {
	b, err := json.Marshal(report())
	if err != nil {
		t.Fatal(err)
	}
	var r Report
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	rss, pause := r.Figures[0], r.Figures[4]
	if rss.Ratio.Median != 0.5 || rss.Met == nil || !*rss.Met || !rss.Target.OfRatio || rss.Unit != Bytes {
		t.Errorf("RSS came back as %+v", rss)
	}
	if pause.A.Spread != nil || pause.Met != nil || len(pause.A.Values) != 2 || pause.A.Values[0] != nil {
		t.Errorf("what is unknown came back as %+v", pause)
	}
}

func TestFormat(t *testing.T) {
	for _, tt := range []struct {
		unit  Unit
		value float64
		want  string
	}{
		{Bytes, 182.4, "182 bytes"},
		{Bytes, 70_000, "0.1 MiB"},
		{Nanoseconds, 209, "0.21 us"},
		{Nanoseconds, 999_600, "1000 us"},
		{Nanoseconds, 12_345_678, "12.3 ms"},
		{Nanoseconds, 1.5e9, "1.50 s"},
		{PerSecond, 999, "999/s"},
		{Number, 1_000_000, "1,000,000"},
	} {
		if got := tt.unit.format(tt.value); got != tt.want {
			t.Errorf("%v %s is printed %q, want %q", tt.value, tt.unit, got, tt.want)
		}
	}
}

func TestGCTrace(t *testing.T) {
	const output = `gc 1 @0.015s 1%: 0.011+0.35+0.005 ms clock, 0.022+0.10/0.2/0.0+0.01 ms cpu, 4->4->0 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P
level=INFO msg="gc is a word: 9+9+9 ms clock"
gc 2 @1.015s 1%: 0.011+1000+0.25 ms clock, 0.022+0.10/0.2/0.0+0.01 ms cpu, 4->4->0 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P (forced)
scvg: 8 KB released
gc 3 @2.015s 1%: 7+1+1`
	for _, piece := range []int{1, 7, len(output)} {
		var g gcTrace
		for rest := output; rest != ""; rest = rest[min(piece, len(rest)):] {
			if n, err := g.Write([]byte(rest[:min(piece, len(rest))])); err != nil || n == 0 {
				t.Fatal(n, err)
			}
		}
		if n, longest := g.report(); n != 2 || longest != 250*time.Microsecond {
			t.Errorf("pieces of %d: %d collections, the longest pause %v, want 2 and 250us", piece, n, longest)
		}
	}
	for _, line := range []string{"", "gc ", "gc 1: 1+2 ms clock", "gc 1: 1+2+x ms clock", "gc 1 1+2+3 ms clock"} {
		if pause, ok := parseGCTrace(line); ok {
			t.Errorf("%q is a pause of %v", line, pause)
		}
	}
}
