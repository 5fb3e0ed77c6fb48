package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"strings"

	"github.com/beanpole-mq/beanpole/bench"
	"github.com/beanpole-mq/beanpole/bench/load"
)

// A chart is groups of horizontal bars, drawn as an SVG of its own, which a browser shows as a picture: its colours
// follow the scheme of the reader, light or dark, by a style sheet within, and it has no background.
type chart struct {
	Title, better string
	machine       bench.Machine
	unit          load.Unit
	kinds         []kind
	groups        []group

	// What is drawn, in pixels.
	Height int
	Texts  []text
	Rects  []rect
	Lines  []line
}

// A kind of bars, such as those of one server. Its class is one of the style sheet.
type kind struct{ class, name string }

// A group has a bar of each kind.
type group struct {
	label string
	bars  []bar
}

// A bar is a median, 0 if it is unknown, and how far the values were apart.
type bar struct {
	bench.Spread
	ratio float64 // to what it is compared with; 0: it is not
}

type (
	text struct {
		X, Y                       int
		Class, Text, Ratio, Anchor string
	}
	rect struct {
		Class        string
		X, Y, Height int
		Width        float64
	}
	line struct{ Class, D string }
)

// All in pixels.
const (
	chartWidth = 720
	labels     = 178 // where bars begin
	values     = 128 // room for what is written after the longest bar
	barHeight  = 13
	barStep    = 16
	groupGap   = 13
	legendStep = 20
)

//go:embed chart.svg
var svg string

var page = template.Must(template.New("svg").Parse(svg))

// draw writes the chart to a file.
func (c *chart) draw(file string) error {
	y := c.legend(28) + 12
	c.write(text{Y: 20, Class: "title", Text: c.Title})
	axis, scale := y-4, (chartWidth-labels-values)/c.largest()
	for _, g := range c.groups {
		c.write(text{Y: y + len(g.bars)*barStep/2 + 3, Text: g.label})
		for i, b := range g.bars {
			c.bar(y, c.kinds[i].class, b, scale)
			y += barStep
		}
		y += groupGap
	}
	y += 3 - groupGap
	c.Lines = append(c.Lines, line{"axis", fmt.Sprintf("M%d.5 %dV%d", labels-1, axis, y)})
	y += 22
	c.write(text{Y: y, Class: "quiet small", Text: "Medians; the thin lines are from the smallest to the largest. " + c.machine.String()})
	c.Height = y + 8
	var out bytes.Buffer
	if err := page.Execute(&out, c); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644) // #nosec G306 G703 -- pictures are for everybody, in the directory that the user names
}

func (c *chart) write(t text) { c.Texts = append(c.Texts, t) }

// legend says which bars are whose, in as many lines as that takes, and returns where it ends.
func (c *chart) legend(y int) int {
	y += legendStep - 4
	width := func(s string) int { return len(s) * 27 / 4 } // about: fonts differ
	x := 0
	for _, k := range c.kinds {
		w := 18 + width(k.name)
		if x > 0 && x+w > chartWidth {
			x, y = 0, y+legendStep
		}
		c.Rects = append(c.Rects, rect{k.class, x, y - 10, 10, 11})
		c.write(text{X: x + 18, Y: y, Class: "quiet", Text: k.name})
		x += w + 18
	}
	if x+width(c.better) > chartWidth {
		y += legendStep
	}
	c.write(text{X: chartWidth, Y: y, Class: "quiet", Text: c.better, Anchor: "end"})
	return y
}

// bar draws one bar, how far its values were apart, and the value.
func (c *chart) bar(y int, class string, b bar, scale float64) {
	if b.Median == 0 {
		c.write(text{X: labels + 6, Y: y + 11, Class: "value quiet", Text: "gave up"})
		return
	}
	c.Rects = append(c.Rects, rect{class, labels, y, barHeight - 1, max(1, b.Median*scale)})
	if b.Max > b.Min {
		c.Lines = append(c.Lines, line{"spread", fmt.Sprintf("M%.1f %dH%.1f", labels+b.Min*scale, y+barHeight/2, labels+b.Max*scale)})
	}
	t := text{X: labels + 7 + int(max(1, b.Median*scale, b.Max*scale)), Y: y + 11, Class: "value", Text: short(c.unit, b.Median)}
	switch {
	case b.ratio >= 10:
		t.Ratio = fmt.Sprintf("%.0f×", b.ratio)
	case b.ratio >= 1:
		t.Ratio = fmt.Sprintf("%.1f×", b.ratio)
	case b.ratio > 0:
		t.Ratio = fmt.Sprintf("%.2f×", b.ratio)
	}
	c.write(t)
}

// largest is the largest value of the chart.
func (c *chart) largest() (most float64) {
	for _, g := range c.groups {
		for _, b := range g.bars {
			most = max(most, b.Max)
		}
	}
	return most
}

// Describe says what the chart shows, to those who do not see it.
func (c *chart) Describe() string {
	var lines []string
	for _, g := range c.groups {
		var bars []string
		for i, b := range g.bars {
			if b.Median > 0 {
				bars = append(bars, c.kinds[i].name+" "+short(c.unit, b.Median))
			}
		}
		lines = append(lines, g.label+": "+strings.Join(bars, ", "))
	}
	return strings.Join(lines, "; ")
}

// short prints a value with two or three digits that say something.
func short(unit load.Unit, v float64) string {
	switch {
	case unit != load.PerSecond:
		return unit.Format(v)
	case v >= 1e6:
		return load.ThreeDigits(v/1e6) + " M"
	case v >= 1e3:
		return load.ThreeDigits(v/1e3) + " k"
	}
	return load.ThreeDigits(v)
}
