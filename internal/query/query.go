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
	Tubes   []string // names or patterns with * and ?, one of which must match; nil for all
	States  []string // one of which must match; nil for all
	Numbers []Number
	Reasons []string // patterns with * and ? of the reason of the last failure; all must match
	Bodies  []Body
	Choices []Choice
}

// A Choice is a list of options, one of which must match.
type Choice []Option

// An Option is a query with a single condition.
type Option struct {
	Not bool // the condition must not hold
	*Query
}

// A Number is a condition on an attribute of a job.
type Number struct {
	Name, Op string // Op is one of = > >= < <=
	Value    int64  // times are in seconds
	Text     string // the value as the user typed it
}

// A Kind is the way in which a Body matches.
type Kind uint8

// The kinds.
const (
	Text    Kind = iota // the body contains Text
	Regexp              // Text is a regular expression (RE2) that matches
	Path                // a value at the path Text, such as user.id
	Pointer             // a value at the JSON pointer Text, such as /user/id
	Class               // the body has the class Value, a pattern with * and ?
)

// A Body is a condition on the body of a job.
type Body struct {
	Kind  Kind
	Text  string
	Op    string // comparison with the value, as in a Number; empty for any value
	Value string
}

const (
	// MaxLength is the maximum length of a query in bytes.
	MaxLength = 2 << 10

	maxParts = 20
)

var states = op.States

// numbers contains the names of Numbers, with the units of their values.
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
		c, err := p.choice()
		if err != nil {
			return nil, err
		}
		if len(c) > 1 || c[0].Not {
			q.Choices = append(q.Choices, c)
			continue
		}
		one := c[0].Query
		q.Tubes, q.States = append(q.Tubes, one.Tubes...), append(q.States, one.States...)
		q.Numbers, q.Bodies = append(q.Numbers, one.Numbers...), append(q.Bodies, one.Bodies...)
		q.Reasons = append(q.Reasons, one.Reasons...)
	}
	return q, nil
}

const blanks = " \t\r\n"

// A parser contains the unparsed rest of a query.
type parser struct {
	rest  string
	parts int
}

// choice parses conditions with "or" between them.
func (p *parser) choice() (c Choice, err error) {
	for more := true; more; more = p.keyword("or") {
		o := Option{Query: new(Query)}
		for p.keyword("not") {
			o.Not = !o.Not
		}
		if p.parts++; p.parts > maxParts {
			return nil, fmt.Errorf("want %d parts at most", maxParts)
		}
		if err := p.part(o.Query); err != nil {
			return nil, err
		}
		p.rest = strings.TrimLeft(p.rest, blanks)
		c = append(c, o)
	}
	return c, nil
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

// part parses one condition.
func (p *parser) part(q *Query) error {
	switch p.rest[0] {
	case '"':
		text, err := p.quoted()
		q.add(Body{Kind: Text, Text: text})
		return err
	case '/':
		if end := endOfRegexp(p.rest); end > 0 {
			q.add(Body{Kind: Regexp, Text: p.rest[1:end]})
			p.rest = p.rest[end+1:]
			return nil
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
			q.add(Body{Kind: Pointer, Text: p.word()})
			return nil
		}
		after = strings.TrimLeft(spaced[len(op):], blanks)
	}
	if op == "" || after == "" || strings.ContainsAny(after[:1], blanks) {
		q.add(Body{Kind: Text, Text: p.word()})
		return nil
	}
	all := *p
	p.rest = after
	value, err := p.value()
	if err != nil {
		return err
	}
	if name == "reason" && (op == ":" || op == "=") {
		if op == ":" {
			value = "*" + value + "*"
		}
		q.Reasons = append(q.Reasons, value)
		return nil
	}
	if op == ":" {
		op = "="
	} else if !strings.HasPrefix(name, "/") && !isNumber(name) {
		if _, err := strconv.ParseFloat(value, 64); err != nil || op == "=" { // a=b, a->b
			*p = all
			q.add(Body{Kind: Text, Text: p.word()})
			return nil
		}
	}
	return q.condition(name, op, value)
}

func (q *Query) add(b Body) { q.Bodies = append(q.Bodies, b) }

// condition adds the condition NAME OP VALUE.
func (q *Query) condition(name, op, value string) error {
	switch {
	case name == "tube":
		q.Tubes = append(q.Tubes, strings.Split(value, ",")...)
	case name == "state":
		for _, s := range strings.Split(value, ",") {
			if !slices.Contains(states, s) {
				return fmt.Errorf("state: unknown state %q; want one of %s", s, strings.Join(states, ", "))
			}
			q.States = append(q.States, s)
		}
	case isNumber(name):
		n, err := number(name, value)
		if err != nil {
			return err
		}
		q.Numbers = append(q.Numbers, Number{name, op, n, value})
	case name[0] == '/':
		q.add(Body{Pointer, name, op, value})
	case name == "class" && op == "=":
		q.add(Body{Kind: Class, Text: name, Op: op, Value: value})
	case value == "*":
		q.add(Body{Kind: Path, Text: name})
	default:
		q.add(Body{Path, name, op, value})
	}
	return nil
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
