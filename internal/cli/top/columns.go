package top

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

// A column is a column of the table of tubes.
type column struct {
	title string
	width int // including the leading blank, which the sort mark replaces
	cell  func(*Tube) string
	less  func(a, b *Tube) int // larger values first, except for the name
}

// byAttention and name are the first columns. They are always shown.
const (
	byAttention = iota
	name
)

// columns lists the columns, the most important first: a narrow terminal shows only the
// first.
var columns = []column{
	{title: "!", width: 2, cell: (*Tube).mark, less: worseFirst},
	{title: "TUBE", cell: func(t *Tube) string { return t.Name }, less: func(*Tube, *Tube) int { return 0 }},
	by("READY", 7, count, func(t *Tube) uint64 { return t.Jobs.Ready }),
	by("AGE", 7, ageIfAny, func(t *Tube) int64 { return t.OldestReady }),
	by("RESERVED", 9, count, func(t *Tube) uint64 { return t.Jobs.Reserved }),
	by("WAITING", 8, count, func(t *Tube) uint64 { return t.Waiting }),
	by("WATCHING", 9, count, func(t *Tube) uint64 { return t.Watching }),
	by("BURIED", 7, count, func(t *Tube) uint64 { return t.Jobs.Buried }),
	by("PUT/s", 7, rate, func(t *Tube) float64 { return t.putRate }),
	by("DEL/s", 7, rate, func(t *Tube) float64 { return t.deleteRate }),
	by("DELAYED", 8, count, func(t *Tube) uint64 { return t.Jobs.Delayed }),
	by("PAUSED", 7, ageIfAny, func(t *Tube) int64 { return t.PauseLeft }),
}

// by returns a column that sorts by value and formats it with text.
func by[V cmp.Ordered](title string, width int, text func(V) string, value func(*Tube) V) column {
	return column{
		title: title, width: width,
		cell: func(t *Tube) string { return text(value(t)) },
		less: func(a, b *Tube) int { return cmp.Compare(value(b), value(a)) },
	}
}

// count formats a number in at most six characters.
func count(n uint64) string {
	switch {
	case n < 1e6:
		return strconv.FormatUint(n, 10)
	case n < 1e7:
		return strconv.FormatFloat(float64(n)/1e6, 'f', 2, 64) + "M"
	case n < 1e10:
		return strconv.FormatUint(n/1e6, 10) + "M"
	}
	return strconv.FormatUint(n/1e9, 10) + "G"
}

func rate(r float64) string {
	if r > 0 && r < 10 {
		return strconv.FormatFloat(r, 'f', 1, 64)
	}
	return count(uint64(r + 0.5))
}

// ageIfAny formats seconds as age does. It returns "" for 0.
func ageIfAny(seconds int64) string {
	if seconds == 0 {
		return ""
	}
	return age(cliutil.OfSeconds(seconds))
}

// age formats a duration in at most six characters.
func age(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Hour:
		d = d.Round(time.Second)
	case d < 100*time.Hour:
		d = d.Truncate(time.Minute)
	default:
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := d.String()
	if d >= time.Hour {
		text = strings.TrimSuffix(text, "0s")
	}
	return text
}
