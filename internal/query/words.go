package query

import "strings"

// Words returns the conditions as phrases that follow "jobs".
func (q *Query) Words() (parts []string) {
	if len(q.Tubes) > 0 {
		parts = append(parts, "in "+strings.Join(q.Tubes, " or "))
	}
	if len(q.States) > 0 {
		parts = append(parts, strings.Join(q.States, " or "))
	}
	for _, part := range q.Parts {
		var options []string
		for i := range part {
			options = append(options, part[i].words())
		}
		parts = append(parts, strings.Join(options, " or "))
	}
	return parts
}

// words returns the condition as a phrase.
func (c *Condition) words() (text string) {
	switch {
	case c.Kind == Tube:
		text = "in " + strings.Join(c.Any, " or ")
	case c.Kind == State:
		text = strings.Join(c.Any, " or ")
	case c.Kind == Number:
		text = "with " + c.Name + sign(c.Op) + c.Value
	case c.Kind == Reason:
		text = "whose reason is " + c.Value
	case c.Kind == Text:
		text = "that contain “" + c.Value + "”"
	case c.Kind == Regexp:
		text = "that match " + c.Value
	case c.Op == "":
		text = "that have " + c.Name
	default:
		text = "where " + c.Name + sign(c.Op) + c.Value
	}
	if c.Not {
		return "not " + text
	}
	return text
}

func sign(op string) string {
	if op == "=" {
		return " is "
	}
	return " " + strings.NewReplacer(">=", "≥", "<=", "≤").Replace(op) + " "
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
