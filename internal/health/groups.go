package health

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Groups merges findings that differ only in the tube: first those of tubes whose names
// differ only in numbers, such as tube-1 and tube-2, then the others of the same kind.
// Four or more findings become one.
type Groups struct{ by map[groupKey]*group }

type groupKey struct{ kind, severity, tubes string }

type group struct {
	first []Finding // at most three; the worst if the names have no common pattern
	all   Finding
}

const (
	groupFrom  = 4    // number of findings
	mostGroups = 1000 // limits the memory; later findings are not merged
)

// numbers matches the part of a name that findings of a group do not share.
var numbers = regexp.MustCompile(`[0-9]+`)

// Add adds a finding about a tube. It returns false if the finding cannot be merged.
func (g *Groups) Add(t *Tube, f *Finding) bool {
	like := numbers.ReplaceAllString(f.Tube, "*")
	if f.Tube == "" { // a finding about the server
		return false
	} else if like == f.Tube {
		like = ""
	}
	one := g.by[groupKey{f.Kind, f.Severity, like}]
	if one == nil {
		if len(g.by) == mostGroups {
			return false
		}
		one = g.group(f, like)
	}
	if one.all.Tubes < groupFrom-1 {
		t.Explain(f)
	}
	one.add(f)
	return true
}

// group returns the group to which the finding belongs.
func (g *Groups) group(f *Finding, like string) *group {
	key := groupKey{f.Kind, f.Severity, like}
	if g.by == nil {
		g.by = make(map[groupKey]*group)
	}
	if g.by[key] == nil {
		one := &group{all: *f}
		one.all.Tube, one.all.Like, one.all.Count, one.all.More = "", like, 0, 0
		g.by[key] = one
	}
	return g.by[key]
}

func (one *group) add(f *Finding) {
	at := len(one.first)
	if one.all.Like == "" { // the text contains names only if there is no pattern
		at, _ = slices.BinarySearchFunc(one.first, f, func(a Finding, b *Finding) int { return Compare(&a, b) })
	}
	if at < groupFrom-1 {
		one.first = slices.Insert(one.first[:min(len(one.first), groupFrom-2)], at, *f)
	}
	one.all.Tubes++
	one.all.Count += f.Count
	one.all.More += f.More
	one.all.Seconds, one.all.Over = max(one.all.Seconds, f.Seconds), max(one.all.Over, f.Over)
}

// Each calls tell for each group and for each finding outside groups.
func (g *Groups) Each(tell func(f Finding)) {
	for key, one := range g.by {
		if key.tubes != "" && one.all.Tubes < groupFrom {
			delete(g.by, key)
			for i := range one.first {
				g.group(&one.first[i], "").add(&one.first[i])
			}
		}
	}
	for _, one := range g.by {
		if one.all.Tubes < groupFrom {
			for _, f := range one.first {
				tell(f)
			}
			continue
		}
		one.all.Text = digits(uint64(one.all.Tubes)) + " tubes " + strings.Replace(ofTubes[one.all.Kind], "%", digits(one.all.Count), 1)
		if one.all.Like == "" {
			one.all.Text += one.names()
		}
		tell(one.all)
	}
}

// names returns the names of the first tubes.
func (one *group) names() string {
	first := one.first
	return fmt.Sprintf(" (%s, %s, %s and %s more)", first[0].Tube, first[1].Tube, first[2].Tube, digits(uint64(one.all.Tubes-len(first))))
}

// ofTubes contains the texts of findings about several tubes, by kind. % is the count.
var ofTubes = map[string]string{
	"unwatched": "without workers: % jobs are ready",
	"slow":      "with slow workers: % jobs are ready",
	"buried":    "with % buried jobs",
	"paused":    "are paused; ready jobs: %",
	"timeouts":  "with timeouts: % reservations timed out",
	"releases":  "with release loops: % jobs were released",
	"held":      "with jobs that are reserved for too long",
	"limited":   "at or near their limits",
}
