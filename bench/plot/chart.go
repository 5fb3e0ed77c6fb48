package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"strings"

	"github.com/beanpole-mq/beanpole/bench/load"
)

// A chart is an SVG with groups of horizontal bars. Its style sheet follows the reader's
// light or dark color scheme, and it has no background. Lengths are in pixels.
type chart struct {
	Title, Better string
	Machine       string
	unit          string // unit of a Go benchmark result
	Kinds         []kind
	Groups        []group

	Height int
	Axis   string
}

// A kind is a kind of bars, such as the bars of one server. Its class is defined in the
// style sheet.
type kind struct {
	Class, Name string
	Y           int

	server string // name of the server in benchmarks
}

// A group contains a bar of each kind.
type group struct {
	Label string
	Bars  []bar
	Y     int
}

// A bar is a median with the spread of its values. A median of 0 means unknown.
type bar struct {
	of    spread
	ratio float64 // ratio to the reference; 0 means none

	Class, Value, Times, Spread string
	Y, End                      int
	Width                       float64
}

const (
	left     = 178              // start of the bars
	longest  = 720 - left - 128 // leaves room for the label after a bar
	barStep  = 16
	groupGap = 13
)

//go:embed chart.svg
var svg string

var page = template.Must(template.New("svg").Parse(svg))

// draw writes the chart to a file.
func (c *chart) draw(file string) error {
	c.place()
	var out bytes.Buffer
	if err := page.Execute(&out, c); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644) // pictures are public, and the user has named the directory
}

// place computes the positions of all elements.
func (c *chart) place() {
	most, y := 0.0, 34
	for _, g := range c.Groups {
		for _, b := range g.Bars {
			most = max(most, b.of.most)
		}
	}
	for i := range c.Kinds {
		c.Kinds[i].Y = y
		y += 18
	}
	y += 8
	c.Axis = fmt.Sprintf("M%d.5 %dV", left-1, y-4)
	for k := range c.Groups {
		g := &c.Groups[k]
		g.Y = y + len(g.Bars)*barStep/2 + 3
		for i := range g.Bars {
			g.Bars[i].place(c, i, y, longest/most)
			y += barStep
		}
		y += groupGap
	}
	y += 3 - groupGap
	c.Axis += fmt.Sprint(y)
	c.Height = y + 30
}

// place computes the position and the label of the ith bar of a group.
func (b *bar) place(c *chart, i, y int, scale float64) {
	b.Y, b.Class = y, c.Kinds[i].Class
	if b.of.median == 0 {
		return
	}
	b.Value, b.Width = short(c.unit, b.of.median), max(1, b.of.median*scale)
	if b.of.most > b.of.least {
		b.Spread = fmt.Sprintf("M%.1f %dH%.1f", left+b.of.least*scale, y+6, left+b.of.most*scale)
	}
	b.End = left + 7 + int(max(b.Width, b.of.most*scale))
	switch {
	case b.ratio >= 10:
		b.Times = fmt.Sprintf("%.0f×", b.ratio)
	case b.ratio >= 1:
		b.Times = fmt.Sprintf("%.1f×", b.ratio)
	case b.ratio > 0:
		b.Times = fmt.Sprintf("%.2f×", b.ratio)
	}
}

// Describe returns a text alternative for the chart.
func (c *chart) Describe() string {
	var lines []string
	for _, g := range c.Groups {
		var bars []string
		for i, b := range g.Bars {
			if b.Value != "" {
				bars = append(bars, c.Kinds[i].Name+" "+b.Value)
			}
		}
		lines = append(lines, g.Label+": "+strings.Join(bars, ", "))
	}
	return strings.Join(lines, "; ")
}

// short formats a value with two or three significant digits.
func short(unit string, v float64) string {
	switch {
	case strings.HasSuffix(unit, "-ns"):
		return load.FormatTime(v)
	case strings.HasPrefix(unit, "bytes"):
		return fmt.Sprintf("%.0f bytes", v)
	case v >= 1e6:
		return load.ThreeDigits(v/1e6) + " M"
	case v >= 1e3:
		return load.ThreeDigits(v/1e3) + " k"
	}
	return load.ThreeDigits(v)
}
