package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/bench"
	"github.com/beanpole-mq/beanpole/bench/load"
)

// classes finds the names of the classes of the style sheet.
var classes = regexp.MustCompile(`\.([a-z]+)\{`)

// What was saved for the page is drawn, each chart as XML that has nothing of other hosts, no code, and no class that the
// style sheet does not know, and which names the figures for those who do not see it.
func TestCharts(t *testing.T) {
	dir := t.TempDir()
	if err := run("../results", dir); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range classes.FindAllStringSubmatch(svg, -1) {
		known[m[1]] = true
	}
	for _, p := range append(plots, plot{name: "cluster"}) {
		text, err := os.ReadFile(filepath.Join(dir, p.name+".svg"))
		if err != nil {
			t.Error(err)
			continue
		}
		var elements []string
		for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", p.name, err)
			}
			e, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			elements = append(elements, e.Name.Local)
			for _, a := range e.Attr {
				for _, class := range strings.Fields(a.Value) {
					if a.Name.Local == "class" && !known[class] {
						t.Errorf("%s: the style sheet has no class %s", p.name, class)
					}
				}
			}
		}
		if got := strings.Join(elements[:4], " "); got != "svg title desc style" {
			t.Errorf("%s begins with %s", p.name, got)
		}
		for _, e := range elements {
			if !strings.Contains(" svg title desc style text tspan rect path ", " "+e+" ") {
				t.Errorf("%s has an element %s", p.name, e)
			}
		}
		if size := len(text); size > 20<<10 {
			t.Errorf("%s: %d bytes", p.name, size)
		}
	}
}

// A bar is as long as its value is large, and has its ratio behind it.
func TestBars(t *testing.T) {
	at := func(median, least, most float64) bench.Spread {
		return bench.Spread{Median: median, Min: least, Max: most}
	}
	c := chart{Title: "a < b", Better: "longer is better", unit: load.PerSecond, Kinds: servers, Groups: []group{
		{Label: "first", Bars: []bar{{of: at(100_000, 90_000, 110_000)}, {of: at(200_000, 200_000, 200_000), ratio: 2}, {of: at(400_000, 400_000, 400_000)}}},
		{Label: "second", Bars: []bar{{}, {of: at(12, 12, 12)}, {of: at(1_230_000, 1_230_000, 1_230_000)}}},
	}}
	file := filepath.Join(t.TempDir(), "bars.svg")
	if err := c.draw(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{longest * 10. / 123, longest * 20. / 123, longest * 40. / 123, 0, 1, longest} {
		if got := c.Groups[i/3].Bars[i%3].Width; math.Abs(got-want) > 0.1 {
			t.Errorf("bar %d is %v long, not %v", i, got, want)
		}
	}
	for _, want := range []string{
		"<title id=\"t\">a &lt; b</title>", `>100 k</text>`, `>200 k<tspan class="ratio" dx="8">2.0×</tspan></text>`, ">1.23 M<", ">12.0<", "gave up",
		"first: beanstalkd 100 k, beanpole 200 k", "prefers-color-scheme:dark",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the chart has no %s:\n%s", want, text)
		}
	}
}

// Figures that were not measured are left out, and so is a chart without any: the one of before stays.
func TestMissing(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "throughput.svg")
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	rows := []bench.Puts{{Contender: "cluster of three, at the leader", Clients: 1, Rate: bench.Spread{Median: 8, Min: 7, Max: 9}}}
	if err := bench.Save(filepath.Join(dir, "cluster.json"), rows); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, dir); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(old); string(text) != "old" || err != nil {
		t.Error(string(text), err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "cluster.svg")); !strings.Contains(string(text), "1 client: cluster of three, at the leader 8") || err != nil {
		t.Error(string(text), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "memory.json"), []byte("{}\n{\"name\":"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(dir, dir); err == nil {
		t.Error("a file that ends within a line is not noticed")
	}
}
