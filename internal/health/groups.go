package health

// Groups gather findings of one kind about tubes whose names differ in numbers only, such as tube-1 and tube-2. Where
// there are more than three they become one.
type Groups struct{ by map[groupKey]*group }

type groupKey struct{ kind, severity, tubes, expectedUntil string }

type group struct {
	first []Finding // three at most
	all   Finding
}

const (
	groupFrom  = 4    // findings
	mostGroups = 1000 // more are not told apart, so that they take no more memory than that
)

// Add takes a finding of a tube. It returns false if it stands for itself. All tubes come here for a page: one that joins a group
// takes no memory.
func (g *Groups) Add(t *Tube, f *Finding) bool {
	var room [200]byte // the longest name
	name, numbers := room[:0], false
	for i := range len(f.Tube) {
		switch isDigit := f.Tube[i]-'0' <= 9; {
		case !isDigit:
			name = append(name, f.Tube[i])
		case i == 0 || f.Tube[i-1]-'0' > 9:
			name, numbers = append(name, '*'), true
		}
	}
	if !numbers {
		return false
	}
	one := g.by[groupKey{f.Kind, f.Severity, string(name), f.ExpectedUntil}]
	if one == nil {
		if len(g.by) == mostGroups {
			return false
		}
		if g.by == nil {
			g.by = make(map[groupKey]*group)
		}
		one = &group{all: *f}
		one.all.Tube, one.all.Like, one.all.Count, one.all.More = "", string(name), 0, 0
		g.by[groupKey{f.Kind, f.Severity, one.all.Like, f.ExpectedUntil}] = one
	}
	if len(one.first) < groupFrom-1 {
		t.Explain(f)
		one.first = append(one.first, *f)
	}
	one.all.Tubes++
	one.all.Count += f.Count
	one.all.More += f.More
	one.all.Seconds, one.all.Over = max(one.all.Seconds, f.Seconds), max(one.all.Over, f.Over)
	return true
}

// Each tells of the groups, and of the findings that are too few for one.
func (g *Groups) Each(tell func(f Finding)) {
	for _, one := range g.by {
		if one.all.Tubes < groupFrom {
			for _, f := range one.first {
				tell(f)
			}
			continue
		}
		one.all.Text = one.all.ofTubes()
		tell(one.all)
	}
}

// ofTubes is the text of a finding about several tubes.
func (f *Finding) ofTubes() string {
	tubes := count(uint64(f.Tubes), "tube", "tubes")
	switch f.Kind {
	case "unwatched":
		return tubes + " without workers: " + count(f.Count, "job is ready", "jobs are ready")
	case "slow":
		return tubes + " whose workers do not keep up: " + count(f.Count, "job is ready", "jobs are ready")
	case "buried":
		return tubes + " with " + count(f.Count, "buried job", "buried jobs")
	case "paused":
		return tubes + " are paused: " + count(f.Count, "job is ready", "jobs are ready")
	}
	return tubes + ": " + f.Text
}
