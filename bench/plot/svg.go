package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/beanpole-mq/beanpole/bench/load"
)

// A chart is groups of horizontal bars.
type chart struct {
	title, better string
	note          string
	unit          load.Unit
	kinds         []kind
	groups        []group
}

// A kind of bars, such as those of one server. Its class is one of the style sheet.
type kind struct{ class, name string }

type group struct {
	label string
	bars  []bar
}

type bar struct {
	kind            int
	value, from, to float64
	known           bool
	ratio           float64 // to what it is compared with; 0: it is not
}

// style has the colours of the console, in both schemes.
const style = `
text{font:13px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;fill:#1c1b19}
.title{font-size:15px;font-weight:600}
.quiet{fill:#66625a}.small{font-size:11.5px}
.ratio{font-weight:650;fill:#2c6e49}
.value{font-size:12px;font-variant-numeric:tabular-nums}
.axis{stroke:#c9c5bb}.spread{stroke:#1c1b19;opacity:.55}
.them{fill:#a9a69e}.us{fill:#2c6e49}.more{fill:#7fb396}.ceiling{fill:#2c6e49;fill-opacity:.08;stroke:#66625a;stroke-dasharray:3 2}
@media (prefers-color-scheme:dark){
text{fill:#eceae4}.quiet{fill:#a19d92}.ratio{fill:#7cc598}
.axis{stroke:#4a4b45}.spread{stroke:#eceae4}
.them{fill:#76746c}.us{fill:#5fae80}.more{fill:#356b4e}.ceiling{fill:#7cc598;fill-opacity:.08;stroke:#a19d92}
}
`

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

// svg draws the chart.
func (c *chart) svg() []byte {
	var body bytes.Buffer
	y := 20
	text(&body, 0, y, "title", c.title)
	y += 8
	y = c.legend(&body, y)
	y += 12
	from := y
	scale := (chartWidth - labels - values) / c.largest()
	for _, g := range c.groups {
		text(&body, 0, y+len(g.bars)*barStep/2+3, "", g.label)
		for _, b := range g.bars {
			c.bar(&body, y, b, scale)
			y += barStep
		}
		y += groupGap
	}
	y -= groupGap - 3
	fmt.Fprintf(&body, `<path class="axis" d="M%d.5 %dV%d"/>`+"\n", labels-1, from-4, y)
	y += 22
	text(&body, 0, y, "quiet small", c.note)

	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="t d">`+"\n", chartWidth, y+8, chartWidth, y+8)
	fmt.Fprintf(&out, "<title id=\"t\">%s</title>\n<desc id=\"d\">%s</desc>\n<style>%s</style>\n", html.EscapeString(c.title), html.EscapeString(c.describe()), style)
	out.Write(body.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// legend says which bars are whose, in as many lines as that takes, and returns where it ends.
func (c *chart) legend(out *bytes.Buffer, y int) int {
	y += legendStep - 4
	x := 0
	for _, k := range c.kinds {
		width := 18 + textWidth(k.name)
		if x > 0 && x+width > chartWidth {
			x, y = 0, y+legendStep
		}
		fmt.Fprintf(out, `<rect class="%s" x="%d.5" y="%d.5" width="11" height="10" rx="1.5"/>`, k.class, x, y-10)
		text(out, x+18, y, "quiet", k.name)
		x += width + 18
	}
	width := textWidth(c.better)
	if x+width > chartWidth {
		y += legendStep
	}
	fmt.Fprintf(out, `<text x="%d" y="%d" class="quiet" text-anchor="end">%s</text>`+"\n", chartWidth, y, html.EscapeString(c.better))
	return y
}

// textWidth is about how wide a text is: fonts differ.
func textWidth(s string) int { return len(s) * 27 / 4 }

// bar draws one bar, how far its values were apart, and the value.
func (c *chart) bar(out *bytes.Buffer, y int, b bar, scale float64) {
	if !b.known {
		text(out, labels+6, y+11, "value quiet", "gave up")
		return
	}
	width := max(1, b.value*scale)
	fmt.Fprintf(out, `<rect class="%s" x="%d.5" y="%d.5" width="%.1f" height="%d" rx="1.5"/>`, c.kinds[b.kind].class, labels, y, width, barHeight-1)
	end := width
	if b.to > b.from {
		fmt.Fprintf(out, `<path class="spread" d="M%.1f %dH%.1f"/>`, labels+b.from*scale, y+barHeight/2, labels+b.to*scale)
		end = max(end, b.to*scale)
	}
	fmt.Fprintf(out, `<text class="value" x="%.1f" y="%d">%s`, labels+end+7, y+11, short(c.unit, b.value))
	if b.ratio > 0 {
		fmt.Fprintf(out, `<tspan class="ratio" dx="8">%s</tspan>`, times(b.ratio))
	}
	out.WriteString("</text>\n")
}

// largest is the largest value of the chart, with what it varied by.
func (c *chart) largest() float64 {
	most := math.SmallestNonzeroFloat64
	for _, g := range c.groups {
		for _, b := range g.bars {
			most = max(most, b.value, b.to)
		}
	}
	return most
}

// describe says what the chart shows, to those who do not see it.
func (c *chart) describe() string {
	var lines []string
	for _, g := range c.groups {
		var bars []string
		for _, b := range g.bars {
			if b.known {
				bars = append(bars, c.kinds[b.kind].name+" "+short(c.unit, b.value))
			}
		}
		lines = append(lines, g.label+": "+strings.Join(bars, ", "))
	}
	return strings.Join(lines, "; ")
}

func text(out *bytes.Buffer, x, y int, class, s string) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	fmt.Fprintf(out, `<text x="%d" y="%d"%s>%s</text>`+"\n", x, y, class, html.EscapeString(s))
}

// short prints a value with two or three digits that say something.
func short(unit load.Unit, v float64) string {
	if unit != load.PerSecond {
		return unit.Format(v)
	}
	for _, p := range []struct {
		factor float64
		name   string
	}{{1e6, " M"}, {1e3, " k"}} {
		if v >= p.factor {
			return load.ThreeDigits(v/p.factor) + p.name
		}
	}
	return load.ThreeDigits(v)
}

// times prints a ratio.
func times(ratio float64) string {
	switch {
	case ratio >= 10:
		return fmt.Sprintf("%.0f×", ratio)
	case ratio >= 1:
		return fmt.Sprintf("%.1f×", ratio)
	}
	return fmt.Sprintf("%.2f×", ratio)
}
