package scale

import (
	"fmt"
	"slices"
)

// A Series is what the rounds gave: a value each, nil where it is unknown.
type Series struct {
	Values  []*float64 `json:"values"`
	*Spread            // of the known ones; nil if there is none
}

// A Spread sums values up.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// add adds the value of the next round.
func (s *Series) add(v float64, known bool) {
	if known {
		s.Values = append(s.Values, &v)
	} else {
		s.Values = append(s.Values, nil)
	}
}

func (s *Series) sum() {
	var all []float64
	for _, v := range s.Values {
		if v != nil {
			all = append(all, *v)
		}
	}
	if n := len(all); n > 0 {
		slices.Sort(all)
		s.Spread = &Spread{Median: (all[(n-1)/2] + all[n/2]) / 2, Min: all[0], Max: all[n-1]}
	}
}

// quotients returns the series of b/a.
func quotients(b, a *Series) (q Series) {
	for i := range min(len(a.Values), len(b.Values)) {
		va, vb := a.Values[i], b.Values[i]
		if va == nil || vb == nil || *va <= 0 {
			q.add(0, false)
		} else {
			q.add(*vb / *va, true)
		}
	}
	return q
}

// format is "median (min..max)", or just the one value, or "-".
func (s *Series) format(value func(float64) string) string {
	if s.Spread == nil {
		return "-"
	}
	median, lowest, highest := value(s.Median), value(s.Min), value(s.Max)
	if lowest == highest {
		return median
	}
	return fmt.Sprintf("%s (%s..%s)", median, lowest, highest)
}
