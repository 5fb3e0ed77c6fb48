package op

import (
	"fmt"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A BindError describes an invalid input. It contains no part of the body.
type BindError struct {
	Status int // HTTP status
	Detail string
}

// Error implements error.
func (m *BindError) Error() string { return m.Detail }

func mistakef(format string, args ...any) error {
	return &BindError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// A Place is the part of a request that contains a field.
type Place string

// The places.
const (
	Path   Place = "path"
	Query  Place = "query"
	Member Place = "json" // a member of the JSON object in the body
	Body   Place = "body"
)

// A Field is a field of an input.
type Field struct {
	reflect.StructField
	Place   Place
	Name    string // name in the request
	Default string
	Enum    []string

	min, max int64
	bounded  bool
	items    int // maximum length of a list; zero means no limit
}

// A Plan describes a type of inputs.
type Plan struct {
	Fields []Field
	Blank  reflect.StructTag // tag of the field _, which describes the whole input

	raw *Field // the field with the whole body; nil if there is none
}

// States are the states of jobs. A field with `as:"State"` has one of them. IdleStates
// are the states of jobs that no worker holds.
var (
	States     = []string{"ready", "reserved", "delayed", "buried"}
	IdleStates = []string{"ready", "delayed", "buried"}
)

var plans sync.Map // reflect.Type -> *Plan

// PlanOf returns the plan of a struct. It panics if a tag is invalid.
func PlanOf(t reflect.Type) *Plan {
	if p, ok := plans.Load(t); ok {
		return p.(*Plan)
	}
	p := &Plan{}
	for _, f := range reflect.VisibleFields(t) {
		switch {
		case f.Anonymous:
			continue
		case f.Name == "_":
			p.Blank = f.Tag
			continue
		}
		p.Fields = append(p.Fields, fieldOf(f))
	}
	for i := range p.Fields {
		if p.Fields[i].Place == Body {
			p.raw = &p.Fields[i]
		}
	}
	plans.Store(t, p)
	return p
}

func fieldOf(f reflect.StructField) Field {
	one := Field{StructField: f, Default: f.Tag.Get("default")}
	for _, place := range []Place{Path, Query, Member, Body} {
		if name, ok := f.Tag.Lookup(string(place)); ok {
			one.Place, one.Name = place, name
		}
	}
	if one.Place == "" {
		panic(fmt.Sprintf("op: no tag defines the place of %s", f.Name))
	}
	if f.Tag.Get("as") == "State" {
		one.Enum = States
	} else if text := f.Tag.Get("enum"); text != "" {
		one.Enum = strings.Split(text, ",")
	}
	least, most := f.Tag.Get("min"), f.Tag.Get("max")
	if one.bounded = least != "" || most != ""; one.bounded {
		one.min, one.max = number(least, 0), number(most, math.MaxInt64)
		if f.Type.Kind() == reflect.Uint32 {
			one.max = min(one.max, math.MaxUint32)
		}
	}
	one.items = int(number(f.Tag.Get("maxitems"), 0))
	return one
}

// number parses the value of a tag. It returns other for a tag that is absent.
func number(text string, other int64) int64 {
	if text == "" {
		return other
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// Of returns the value of the field. in points to the input.
func (f *Field) Of(in any) reflect.Value { return reflect.ValueOf(in).Elem().FieldByIndex(f.Index) }

// Field returns the field with a name, or nil.
func (p *Plan) Field(name string) *Field {
	i := slices.IndexFunc(p.Fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Fields[i]
}

// Or returns the value of an optional field, or other if the field is nil.
func Or[T any](field *T, other T) T {
	if field != nil {
		return *field
	}
	return other
}

// Required reports whether the field is required.
func (f *Field) Required() bool {
	return f.Place == Path || f.Tag.Get("required") != "" || f.Place == Member && f.Tag.Get("min") != ""
}

// NeedsBody reports whether the operation requires a body.
func (p *Plan) NeedsBody() bool {
	return p.raw != nil || p.Blank != "" || slices.ContainsFunc(p.Fields, func(f Field) bool { return f.Place == Member && f.Required() })
}

// names returns the names of the query parameters in order.
func (p *Plan) names() (names []string) {
	names = []string{}
	for i := range p.Fields {
		if p.Fields[i].Place == Query {
			names = append(names, p.Fields[i].Name)
		}
	}
	return names
}

// wanted returns the error for a value outside the bounds of the field.
func (f *Field) wanted() error {
	want := f.Tag.Get("want")
	switch {
	case want != "":
	case f.Enum != nil:
		want = fmt.Sprintf("one of %v", f.Enum)
	case f.Type.Kind() == reflect.Bool:
		want = "true or false"
	case f.Tag.Get("as") == "TubeName":
		want = "the name of a tube"
	case f.Type.Kind() == reflect.String:
		want = "a string that is not empty"
	case f.items > 0:
		want = fmt.Sprintf("at most %d", f.items)
	default:
		want = fmt.Sprintf("a number from %d to %d", f.min, f.max)
	}
	return mistakef("%s: want %s", f.Name, want)
}

// Streams reports whether the body is a stream of unknown length.
func (p *Plan) Streams() bool { return p.raw != nil }
