package console

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
)

// A chart shows lines over time. The server draws it.
type chart struct {
	ID, Title    string
	Lines        []chartLine
	Max          string
	From, Middle string   // times on the axis
	Times        []string // times in the table
	First        string   // time of the first failure; empty if it is unknown
	empty        bool     // it has no line
}

type chartLine struct {
	Name, Class, D, Now string
	Values              []string // text alternative

	points []point
	latest float64 // for Now
}

const chartWidth, chartHeight = 300, 96 // also in the template

// A point is a value of a series. It is nil if the value is unknown.
type point = *float64

// downsample reduces a series to n points and divides them by a unit. Each point is the
// mean of the points that it replaces.
func downsample(values []point, n int, unit float64) []point {
	if len(values) == 0 {
		return nil
	}
	n = min(n, len(values))
	points := make([]point, n)
	for i := range points {
		sum, known := 0.0, 0
		for _, v := range values[i*len(values)/n : (i+1)*len(values)/n] {
			if v != nil {
				sum += *v
				known++
			}
		}
		if known > 0 {
			points[i] = new(sum / float64(known) / unit)
		}
	}
	return points
}

// largest returns the largest value of a series, or 0.
func largest(points []point) float64 {
	most := 0.0
	for _, p := range points {
		if p != nil {
			most = max(most, *p)
		}
	}
	return most
}

// longestGap is the maximum number of unknown points that a line bridges. On a busy
// machine, some samples are missing.
const longestGap = 10

// drawPath returns the attribute d of an SVG path through points. The top of the chart is
// the value most, and at least 1. A gap of more than longestGap points breaks the line. A
// series of zeros gets no line: a red line along the axis would look like an error.
func drawPath(points []point, width, height int, most float64) string {
	if largest(points) == 0 {
		return "M0 0"
	}
	var d strings.Builder
	most = max(1, most)
	last := -longestGap - 2 // position of the last known point
	for i, p := range points {
		if p == nil {
			continue
		}
		x := float64(width) * float64(i) / float64(max(1, len(points)-1))
		y := float64(height) - 1 - (float64(height)-3)*(*p)/most
		pen, dot := byte('L'), ""
		if i-last > longestGap+1 {
			pen, dot = 'M', "h0" // a point without known neighbors is a dot
		}
		last = i
		d.WriteByte(pen)
		d.WriteString(strconv.FormatFloat(x, 'f', 1, 64))
		d.WriteByte(' ')
		d.WriteString(strconv.FormatFloat(y, 'f', 1, 64) + dot)
	}
	return d.String()
}

// A spark is a small chart without axes.
type spark struct {
	ID, Line, Class string
	Width, Height   int
}

// newSpark draws the last values of a series. If there are few values, they are on the
// right.
func newSpark(id, class string, points []point, width, height int) *spark {
	points = append(make([]point, max(0, sparkPoints-len(points))), points...)
	return &spark{id, drawPath(points, width, height, largest(points)), class, width, height}
}

// SVG returns the chart as an SVG.
func (s *spark) SVG() template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="spark %s" viewBox="0 0 %d %d" preserveAspectRatio="none" aria-hidden="true">`+ // #nosec G203 -- nothing in it is of a stranger
		`<path id="%s" d="%s"/></svg>`, s.Class, s.Width, s.Height, s.ID, s.Line))
}

// pointsOf returns the points of a series in which all values are known.
func pointsOf[T uint64 | float64](values []T) []point {
	points := make([]point, len(values))
	for i, v := range values {
		points[i] = new(float64(v))
	}
	return points
}
