package bench

import (
	"fmt"
	"math"
	"slices"

	"github.com/beanpole-mq/beanpole/bench/load"
)

// The servers of an experiment.
const (
	sideA         = iota // compared with
	sideB                // compared: ratios are B/A
	sideResponder        // if there is one
	numSides
)

// A Report is what an experiment found.
type Report struct {
	Name    string           `json:"name"`
	Title   string           `json:"title,omitempty"` // empty: it is a row of the tables of loads
	Servers [numSides]string `json:"servers"`         // names of A, B and the responder; empty: there is none
	LeftOut [numSides]string `json:"left_out"`        // why a server was not in all rounds; empty: it was
	Figures []Figure         `json:"figures"`

	rounds int
}

// A Figure is something that an experiment measures: a value in each round.
type Figure struct {
	Name        string           `json:"name"`
	Unit        load.Unit        `json:"unit"`
	Servers     [numSides]Series `json:"servers"`      // A, B, the responder
	ToA         Series           `json:"to_a"`         // B/A of each round; empty where that says nothing
	ToResponder Series           `json:"to_responder"` // B/responder
}

// A Series is what the rounds gave: a value each, nil where it is unknown.
type Series struct {
	Values  []*float64 `json:"values,omitempty"`
	*Spread            // of the known ones; nil if there is none
}

// A Spread sums values up.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// figure returns the figure of that name; if there is none, one of which nothing is known.
func (r *Report) figure(name string) *Figure {
	i := slices.IndexFunc(r.Figures, func(f Figure) bool { return f.Name == name })
	if i < 0 {
		return new(Figure)
	}
	return &r.Figures[i]
}

// add adds what a trial has measured on a server in a round.
func (r *Report) add(side, round int, measured []measurement) {
	for _, m := range measured {
		f := r.figure(m.figure)
		if f.Name == "" {
			r.Figures = append(r.Figures, r.newFigure(m))
			f = &r.Figures[len(r.Figures)-1]
		}
		if !math.IsNaN(m.value) {
			f.Servers[side].Values[round] = &m.value
		}
	}
}

// newFigure returns the figure of a measurement, without values.
func (r *Report) newFigure(m measurement) Figure {
	f := Figure{Name: m.figure, Unit: m.unit}
	for side := range f.Servers {
		if r.Servers[side] != "" {
			f.Servers[side].Values = make([]*float64, r.rounds)
		}
	}
	return f
}

// sum completes a report in which all rounds are.
func (r *Report) sum() {
	for i := range r.Figures {
		f := &r.Figures[i]
		for s := range f.Servers {
			f.Servers[s].sum()
		}
		if f.Unit != load.Times {
			f.ToA = quotients(&f.Servers[sideB], &f.Servers[sideA])
			f.ToResponder = quotients(&f.Servers[sideB], &f.Servers[sideResponder])
		}
	}
}

func (s *Series) sum() {
	var all []float64
	for _, v := range s.Values {
		if v != nil {
			all = append(all, *v)
		}
	}
	if len(all) > 0 {
		s.Spread = NewSpread(all)
	}
}

// NewSpread returns the spread of values, of which there must be one at least.
func NewSpread(values []float64) *Spread {
	values = slices.Sorted(slices.Values(values))
	n := len(values)
	return &Spread{Median: (values[(n-1)/2] + values[n/2]) / 2, Min: values[0], Max: values[n-1]}
}

// Ratio prints a spread of ratios.
func (s *Spread) Ratio() string { return fmt.Sprintf("%.2f (%.2f..%.2f)", s.Median, s.Min, s.Max) }

// quotients returns the series of over/under. Where there is nothing to divide by,
// a round has none.
func quotients(over, under *Series) (q Series) {
	q.Values = make([]*float64, min(len(over.Values), len(under.Values)))
	for i := range q.Values {
		if o, u := over.Values[i], under.Values[i]; o != nil && u != nil && *u > 0 {
			ratio := *o / *u
			q.Values[i] = &ratio
		}
	}
	q.sum()
	return q
}

// format is "median (min..max)", or just the one value, or "-".
func (s *Series) format(print func(float64) string) string {
	if s.Spread == nil {
		return "-"
	}
	median, lowest, highest := print(s.Median), print(s.Min), print(s.Max)
	if lowest == highest {
		return median
	}
	return fmt.Sprintf("%s (%s..%s)", median, lowest, highest)
}

// median prints the median, or "-".
func (s *Series) median(print func(float64) string) string {
	if s.Spread == nil {
		return "-"
	}
	return print(s.Median)
}

// Puts is what clients that put jobs got from a server or a cluster, as the program in cluster saves it.
type Puts struct {
	Contender string  `json:"contender"` // whose servers they are
	Clients   int     `json:"clients"`
	Rate      Spread  `json:"puts_per_second"`
	Ratio     Spread  `json:"ratio"`  // of the rates of a round, to the first contender
	P50       float64 `json:"p50_ns"` // median of the rounds, as are the others
	P99       float64 `json:"p99_ns"`
	CPU       float64 `json:"cpu_ns"` // of all servers, for a put
}
