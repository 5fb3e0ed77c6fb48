// Package query parses a search for jobs. A job must match all parts:
//
//	tube:mail-*  state:buried,delayed  id:17  age>10m  tries>=3  size>1k    an attribute of the job
//	user.id:17  amount>100  user.id:*  /user/id:17  /user/id = 17           a value in the body: at a path, or at a JSON pointer
//	reason:timeout  reason="SMTP*"                                          the reason of the last failure, a part or all of it
//	word  "some text"  /regular expression/                                 text in the body
//	not state:buried  mail or news                                          a negated part; alternatives
//
// A path can start anywhere in the body; a pointer starts at its root. Any other text is
// a word. The package parses queries; it does not execute them.
package query

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/op"
)

// A Query selects jobs. The zero value selects all.
type Query struct {
	Tubes  []string // names or patterns with * and ?, one of which must match; nil for all
	States []string // one of which must match; nil for all
	Parts  []Part   // all must match
}

// A Part matches a job if one of its conditions does.
type Part []Condition

// A Condition is a condition on a job.
type Condition struct {
	Not   bool // the condition must not hold
	Kind  Kind
	Name  string   // name of a Number, or place of a value
	Op    string   // one of = > >= < <=; empty for any value
	Value string   // text, pattern, or value as the user typed it
	N     int64    // value of a Number; times are in seconds
	Any   []string // tubes or states, one of which must match
}

// A Kind is the kind of a condition.
type Kind uint8

// The kinds. Text and later kinds are conditions on the body.
const (
	Tube    Kind = iota // Any contains names or patterns with * and ?
	State               // Any contains states
	Number              // the attribute Name of the job
	Reason              // the reason of the last failure matches Value, a pattern with * and ?
	Text                // the body contains Value
	Regexp              // Value is a regular expression (RE2) that matches
	Path                // a value at the path Name, such as user.id
	Pointer             // a value at the JSON pointer Name, such as /user/id
	Class               // the body has the class Value, a pattern with * and ?
)

const (
	// MaxLength is the maximum length of a query in bytes.
	MaxLength = 2 << 10

	maxParts = 20
)

var states = op.States

// numbers contains the names of attributes, with the units of their values.
var numbers = map[string]map[string]float64{
	"id": nil, "pri": nil, "priority": nil, "tries": nil, "timeouts": nil, "releases": nil, "buries": nil, "kicks": nil, "touches": nil, "size": sizes,
	"age": times, "held": times, "buried": times, "left": times, "delay": times, "ttr": times,
}

var (
	times = map[string]float64{"s": 1, "m": 60, "h": 3600, "d": 86400}
	sizes = map[string]float64{"k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
)

// Parse parses a query. Its errors are intended for the user who typed the query.
func Parse(text string) (*Query, error) {
	q := new(Query)
	if len(text) > MaxLength {
		return nil, fmt.Errorf("want %d bytes at most", MaxLength)
	}
	p := parser{rest: strings.TrimSpace(text)}
	for p.rest != "" {
		part, err := p.part()
		if err != nil {
			return nil, err
		}
		switch c := &part[0]; {
		case len(part) > 1 || c.Not || c.Kind > State:
			q.Parts = append(q.Parts, part)
		case c.Kind == Tube:
			q.Tubes = append(q.Tubes, c.Any...)
		default:
			q.States = append(q.States, c.Any...)
		}
	}
	return q, nil
}

const blanks = " \t\r\n"

// A parser contains the unparsed rest of a query.
type parser struct {
	rest  string
	parts int
}

// part parses conditions with "or" between them.
func (p *parser) part() (all Part, err error) {
	for more := true; more; more = p.keyword("or") {
		not := false
		for p.keyword("not") {
			not = !not
		}
		if p.parts++; p.parts > maxParts {
			return nil, fmt.Errorf("want %d parts at most", maxParts)
		}
		c, err := p.condition()
		if err != nil {
			return nil, err
		}
		c.Not = not
		p.rest = strings.TrimLeft(p.rest, blanks)
		all = append(all, c)
	}
	return all, nil
}

// keyword consumes a word if another part follows it.
func (p *parser) keyword(word string) bool {
	rest, ok := strings.CutPrefix(p.rest, word)
	after := strings.TrimLeft(rest, blanks)
	if ok = ok && after != "" && len(after) < len(rest); ok {
		p.rest = after
	}
	return ok
}

// condition parses one condition.
func (p *parser) condition() (Condition, error) {
	switch p.rest[0] {
	case '"':
		text, err := p.quoted()
		return Condition{Kind: Text, Value: text}, err
	case '/':
		if end := endOfRegexp(p.rest); end > 0 {
			c := Condition{Kind: Regexp, Value: p.rest[1:end]}
			p.rest = p.rest[end+1:]
			return c, nil
		}
	}
	name := p.rest[:nameLength(p.rest)]
	op := operator(p.rest[len(name):])
	after := p.rest[len(name)+len(op):]
	if name == "" || name[0] != '/' && (strings.HasPrefix(after, ":") || strings.HasPrefix(after, "//")) { // App::Class, http://host
		op = ""
	}
	if op == "" && strings.HasPrefix(name, "/") {
		spaced := strings.TrimLeft(after, blanks)
		if op = operator(spaced); op == "" || op == ":" { // any value
			return Condition{Kind: Pointer, Name: p.word()}, nil
		}
		after = strings.TrimLeft(spaced[len(op):], blanks)
	}
	if op == "" || after == "" || strings.ContainsAny(after[:1], blanks) {
		return Condition{Kind: Text, Value: p.word()}, nil
	}
	all := *p
	p.rest = after
	value, err := p.value()
	if err != nil {
		return Condition{}, err
	}
	if name == "reason" && (op == ":" || op == "=") {
		if op == ":" {
			value = "*" + value + "*"
		}
		return Condition{Kind: Reason, Value: value}, nil
	}
	if op == ":" {
		op = "="
	} else if !strings.HasPrefix(name, "/") && !isNumber(name) {
		if _, err := strconv.ParseFloat(value, 64); err != nil || op == "=" { // a=b, a->b
			*p = all
			return Condition{Kind: Text, Value: p.word()}, nil
		}
	}
	return conditionOf(name, op, value)
}

// conditionOf returns the condition NAME OP VALUE.
func conditionOf(name, op, value string) (c Condition, err error) {
	c = Condition{Kind: Path, Name: name, Op: op, Value: value}
	switch {
	case name == "tube":
		c.Kind, c.Any = Tube, strings.Split(value, ",")
	case name == "state":
		c.Kind, c.Any = State, strings.Split(value, ",")
		for _, s := range c.Any {
			if !slices.Contains(states, s) {
				return c, fmt.Errorf("state: unknown state %q; want one of %s", s, strings.Join(states, ", "))
			}
		}
	case isNumber(name):
		c.Kind = Number
		c.N, err = number(name, value)
	case name[0] == '/':
		c.Kind = Pointer
	case name == "class" && op == "=":
		c.Kind = Class
	case value == "*":
		c.Op = ""
	}
	return c, err
}

// Names returns the names of conditions, with their operators.
func Names() []string {
	all := []string{"class:", "not ", "or ", "reason:", "state:", "tube:"}
	for name := range numbers {
		op := ">"
		if numbers[name] == nil {
			op = ":"
		}
		all = append(all, name+op)
	}
	slices.Sort(all)
	return all
}

func isNumber(name string) bool { _, ok := numbers[name]; return ok }

// number parses a value with its unit.
func number(name, value string) (int64, error) {
	units := numbers[name]
	digits, factor := value, 1.0
	if n := len(value); n > 0 && units[value[n-1:]] > 0 {
		digits, factor = value[:n-1], units[value[n-1:]]
	}
	if units == nil {
		if n, err := strconv.ParseUint(value, 10, 63); err == nil {
			return int64(n), nil
		}
	} else if n, err := strconv.ParseFloat(digits, 64); err == nil && n >= 0 && n*factor < math.MaxInt64/2 {
		return int64(n * factor), nil
	}
	switch {
	case units["s"] > 0:
		return 0, fmt.Errorf("%s: %q is not a time; want a number with s, m, h or d, such as 10m", name, value)
	case units != nil:
		return 0, fmt.Errorf("%s: %q is not a size; want a number, with or without k, M or G", name, value)
	}
	return 0, fmt.Errorf("%s: %q is not a whole number", name, value)
}

// quoted parses a quoted text, in which \" is a quote and \\ is a backslash.
func (p *parser) quoted() (string, error) {
	var b strings.Builder
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			p.rest = p.rest[i+1:]
			return b.String(), nil
		case c == '\\' && i+1 < len(p.rest) && strings.ContainsAny(p.rest[i+1:i+2], `"\`):
			i++
			b.WriteByte(p.rest[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", fmt.Errorf("the quote before %q does not end", cut(p.rest[1:]))
}

// Quote quotes text so that Parse reads it as one word.
func Quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// value parses the value after an operator.
func (p *parser) value() (string, error) {
	if p.rest[0] == '"' {
		return p.quoted()
	}
	return p.word(), nil
}

// word returns the text up to the next space.
func (p *parser) word() (word string) {
	end := strings.IndexAny(p.rest, blanks)
	if end < 0 {
		end = len(p.rest)
	}
	word, p.rest = p.rest[:end], p.rest[end:]
	return word
}

// endOfRegexp returns the position of the slash that ends an expression: it must be
// followed by a space or the end. It returns 0 if there is no such slash.
func endOfRegexp(text string) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == '/' && i > 1 && (i+1 == len(text) || strings.ContainsAny(text[i+1:i+2], blanks)):
			return i
		}
	}
	return 0
}

// nameLength returns the length of the name at the start of a text.
func nameLength(text string) int {
	pointer := text[0] == '/'
	for i, c := range []byte(text) {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$' || c == '@' || c >= 0x80:
		case i > 0 && (c >= '0' && c <= '9' || c == '.' || c == '-'):
		case pointer && (c == '/' || c == '~'):
		default:
			return i
		}
	}
	return len(text)
}

// operator returns the operator at the start of a text, or "".
func operator(text string) string {
	for _, op := range []string{">=", "<=", ">", "<", "=", ":"} {
		if strings.HasPrefix(text, op) {
			return op
		}
	}
	return ""
}

func cut(text string) string { return text[:min(len(text), 20)] }
