package query

import (
	"slices"
	"strings"
)

// Words returns the conditions as phrases that follow "jobs".
func (q *Query) Words() (parts []string) {
	if len(q.Tubes) > 0 {
		parts = append(parts, "in "+strings.Join(q.Tubes, " or "))
	}
	if len(q.States) > 0 {
		parts = append(parts, strings.Join(q.States, " or "))
	}
	for _, n := range q.Numbers {
		parts = append(parts, "with "+n.Name+sign(n.Op)+n.Text)
	}
	for _, reason := range q.Reasons {
		parts = append(parts, "whose reason is "+reason)
	}
	for _, b := range q.Bodies {
		switch {
		case b.Kind == Text:
			parts = append(parts, "that contain “"+b.Text+"”")
		case b.Kind == Regexp:
			parts = append(parts, "that match "+b.Text)
		case b.Op == "":
			parts = append(parts, "that have "+b.Text)
		default:
			parts = append(parts, "where "+b.Text+sign(b.Op)+b.Value)
		}
	}
	for _, c := range q.Choices {
		var options []string
		for _, o := range c {
			options = append(options, negated(o.Not)+strings.Join(o.Words(), " "))
		}
		parts = append(parts, strings.Join(options, " or "))
	}
	return parts
}

func sign(op string) string {
	if op == "=" {
		return " is "
	}
	return " " + strings.NewReplacer(">=", "≥", "<=", "≤").Replace(op) + " "
}

// Fits reports whether a job is in one of the states and meets the conditions on numbers.
// number returns an attribute by name, with times in seconds. It returns false if the job
// does not have the attribute. Fits ignores Choices.
func (q *Query) Fits(state string, number func(name string) (n int64, ok bool)) bool {
	if len(q.States) > 0 && !slices.Contains(q.States, state) {
		return false
	}
	for _, n := range q.Numbers {
		if have, ok := number(n.Name); !ok || !Compare(have, n.Op, n.Value) {
			return false
		}
	}
	return true
}

func negated(is bool) string {
	if is {
		return "not "
	}
	return ""
}

// Compare reports whether a OP b holds.
func Compare[N int64 | float64](a N, op string, b N) bool {
	switch op {
	case ">":
		return a > b
	case ">=":
		return a >= b
	case "<":
		return a < b
	case "<=":
		return a <= b
	}
	return a == b
}
