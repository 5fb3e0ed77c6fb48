package query

import "strings"

// String returns a text that Parse parses to the same query.
func (q *Query) String() string {
	var parts []string
	if len(q.Tubes) > 0 {
		parts = append(parts, "tube:"+plain(strings.Join(q.Tubes, ",")))
	}
	if len(q.States) > 0 {
		parts = append(parts, "state:"+strings.Join(q.States, ","))
	}
	for _, n := range q.Numbers {
		parts = append(parts, n.Name+n.Op+plain(n.Text))
	}
	for _, b := range q.Bodies {
		parts = append(parts, b.String())
	}
	return strings.Join(parts, " ")
}

// String returns the condition as a text.
func (b *Body) String() string {
	switch {
	case b.Kind == Text:
		return Quote(b.Text)
	case b.Kind == Regexp:
		return "/" + b.Text + "/"
	case b.Op == "" && b.Kind == Pointer:
		return b.Text
	case b.Op == "":
		return b.Text + ":*"
	case b.Op == "=":
		return b.Text + ":" + Quote(b.Value)
	}
	return b.Text + b.Op + plain(b.Value)
}

// plain quotes a value if necessary.
func plain(value string) string {
	if value == "" || strings.ContainsAny(value, blanks+`"`) {
		return Quote(value)
	}
	return value
}

// Words returns the conditions in words that follow "jobs".
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
	return parts
}

func sign(op string) string {
	if op == "=" {
		return " is "
	}
	return " " + strings.NewReplacer(">=", "≥", "<=", "≤").Replace(op) + " "
}

// Fits reports whether a job is in one of the states and meets the conditions on numbers.
// number returns an attribute by name, with times in seconds.
func (q *Query) Fits(state string, number func(name string) int64) bool {
	if len(q.States) > 0 && !strings.Contains(","+strings.Join(q.States, ",")+",", ","+state+",") {
		return false
	}
	for _, n := range q.Numbers {
		if !Compare(number(n.Name), n.Op, n.Value) {
			return false
		}
	}
	return true
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
