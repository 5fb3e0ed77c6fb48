package top

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// A column of the table of tubes.
type column struct {
	title string
	width int // with the blank before it, where the mark of the sorting goes
	cell  func(*Tube) string
	less  func(a, b *Tube) int // the larger first, but for the name
	// wanted says of a tube that it has something to show here; nil: every tube has. A
	// column that no tube has wanted yet is left out.
	wanted func(*Tube) bool
}

// byAttention and name are the first columns. They are always shown.
const (
	byAttention = iota
	name
)

// columns are in the order of what is needed first when something is wrong: a narrow
// terminal shows the left ones only.
var columns = []column{
	{title: "!", width: 2, cell: (*Tube).mark, less: worseFirst},
	{title: "TUBE", cell: func(t *Tube) string { return t.Name }, less: func(*Tube, *Tube) int { return 0 }},
	counted("READY", 7, nil, func(t *Tube) uint64 { return t.JobsReady }),
	{title: "AGE", width: 7, cell: func(t *Tube) string { return age(t.Age, t.JobsReady > 0 && t.AgeKnown) },
		less: func(a, b *Tube) int { return cmp.Compare(b.Age, a.Age) }},
	counted("RESERVED", 9, nil, func(t *Tube) uint64 { return t.JobsReserved }),
	counted("WAITING", 8, nil, func(t *Tube) uint64 { return t.Waiting }),
	counted("WATCHING", 9, nil, func(t *Tube) uint64 { return t.Watching }),
	counted("BURIED", 7, nil, func(t *Tube) uint64 { return t.JobsBuried }),
	{title: "+BURIED", width: 8, cell: func(t *Tube) string { return grown(t.buriedMore) },
		less:   func(a, b *Tube) int { return cmp.Compare(b.buriedMore, a.buriedMore) },
		wanted: func(t *Tube) bool { return t.buriedMore != 0 }},
	more("+TIMEOUT", func(t *Tube) uint64 { return t.timeoutsMore }),
	more("+RELEASE", func(t *Tube) uint64 { return t.releasesMore }),
	{title: "PAUSED", width: 7, cell: func(t *Tube) string { return age(t.PauseLeft, t.PauseLeft > 0) },
		less:   func(a, b *Tube) int { return cmp.Compare(b.PauseLeft, a.PauseLeft) },
		wanted: func(t *Tube) bool { return t.PauseLeft > 0 }},
	{title: "PUT/s", width: 7, cell: func(t *Tube) string { return rate(t.putRate) },
		less: func(a, b *Tube) int { return cmp.Compare(b.putRate, a.putRate) }},
	{title: "DEL/s", width: 7, cell: func(t *Tube) string { return rate(t.deleteRate) },
		less: func(a, b *Tube) int { return cmp.Compare(b.deleteRate, a.deleteRate) }},
	counted("BYTES", 7, func(t *Tube) bool { return t.Bytes > 0 }, func(t *Tube) uint64 { return t.Bytes }),
	counted("DELAYED", 8, func(t *Tube) bool { return t.JobsDelayed > 0 }, func(t *Tube) uint64 { return t.JobsDelayed }),
}

// more returns a column with what has happened since the view began.
func more(title string, n func(*Tube) uint64) column {
	return column{
		title: title, width: len(title) + 1,
		cell:   func(t *Tube) string { return grown(int64(n(t))) },
		less:   func(a, b *Tube) int { return cmp.Compare(n(b), n(a)) },
		wanted: func(t *Tube) bool { return n(t) > 0 },
	}
}

// counted returns a column with a number.
func counted(title string, width int, wanted func(*Tube) bool, n func(*Tube) uint64) column {
	return column{
		title: title, width: width, wanted: wanted,
		cell: func(t *Tube) string { return count(n(t)) },
		less: func(a, b *Tube) int { return cmp.Compare(n(b), n(a)) },
	}
}

// count writes a number in six characters at most.
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

// grown is count of how much more there is, and nothing for nothing.
func grown(n int64) string {
	switch {
	case n == 0:
		return ""
	case n < 0:
		return "-" + count(uint64(-n))
	}
	return "+" + count(uint64(n))
}

func rate(r float64) string {
	if r > 0 && r < 10 {
		return strconv.FormatFloat(r, 'f', 1, 64)
	}
	return count(uint64(r + 0.5))
}

// age writes a time in six characters at most, and nothing where it is not known.
func age(d time.Duration, known bool) string {
	if !known {
		return ""
	}
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
