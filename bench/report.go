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
	goals  []goal
}

// A Figure is something that an experiment measures: a value in each round.
type Figure struct {
	Name        string           `json:"name"`
	Unit        load.Unit        `json:"unit"`
	Servers     [numSides]Series `json:"servers"`      // A, B, the responder
	ToA         Series           `json:"to_a"`         // B/A of each round; empty where that says nothing
	ToResponder Series           `json:"to_responder"` // B/responder
	Targets     []Target         `json:"targets,omitempty"`
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

// A Target is what is asked of a figure: of B's median or, if it is a ratio, of the median of
// the ratios.
type Target struct {
	Of    string  `json:"of"` // one of the constants
	Limit float64 `json:"limit"`

	// AtLeast means that the limit is the least, and not the most. So much of the
	// responder's figure is then enough too: the generator cannot ask for more.
	AtLeast     bool    `json:"at_least,omitempty"`
	OrResponder float64 `json:"or_of_the_responder,omitempty"`

	Met *bool `json:"met,omitempty"` // nil if the figure is unknown
}

// What targets are about.
const (
	value       = "value"
	toA         = "ratio"
	toResponder = "ratio to the responder"
)

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
	for _, g := range r.goals {
		if g.figure == m.figure {
			f.Targets = append(f.Targets, g.Target)
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
		if f.Unit.Comparable() {
			f.ToA = quotients(&f.Servers[sideB], &f.Servers[sideA])
			f.ToResponder = quotients(&f.Servers[sideB], &f.Servers[sideResponder])
		}
		for j := range f.Targets {
			f.Targets[j].evaluate(f)
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

// subject is what a target is about.
func (t *Target) subject(f *Figure) *Series {
	switch t.Of {
	case toA:
		return &f.ToA
	case toResponder:
		return &f.ToResponder
	}
	return &f.Servers[sideB]
}

func (t *Target) evaluate(f *Figure) {
	s := t.subject(f)
	if s.Spread == nil {
		return
	}
	met := s.Median <= t.Limit
	if t.AtLeast {
		met = s.Median >= t.Limit
	}
	if t.OrResponder > 0 && f.ToResponder.Spread != nil {
		met = met || f.ToResponder.Median >= t.OrResponder
	}
	t.Met = &met
}

// describe says what was asked, and verdict what came of it.
func (t *Target) describe(f *Figure) string {
	relation, limit, of := "<=", load.Factor(t.Limit), t.Of+" "
	if t.AtLeast {
		relation = ">="
	}
	if t.Of == value {
		limit, of = f.Unit.Format(t.Limit), ""
	}
	s := of + relation + " " + limit
	if t.OrResponder > 0 {
		s += ", or " + load.Factor(t.OrResponder) + " of the responder's"
	}
	return s
}

func (t *Target) verdict() string {
	switch {
	case t.Met == nil:
		return "unknown"
	case *t.Met:
		return "met"
	}
	return "missed"
}
