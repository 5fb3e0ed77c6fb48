package op

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Path sets the fields of the path. value returns the value of a segment.
func (p *Plan) Path(in any, value func(name string) string) error {
	for i := range p.Fields {
		f := &p.Fields[i]
		if f.Place != Path {
			continue
		}
		text, to := value(f.Name), f.Of(in)
		if f.Type.Kind() == reflect.String {
			to.SetString(TubeOf(text))
			continue
		}
		id, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return mistakef("%.40q is not the id of a %s: want a number", text, f.Name)
		}
		to.SetUint(id)
	}
	return nil
}

// Segment returns the segment of a path that names a tube. Names that browsers and
// servers treat as a part of the path, even if they are escaped, are written with ~,
// which tube names cannot contain.
func Segment(tube string) string {
	switch tube {
	case ".", "..", "/":
		return tildes.Replace(tube)
	}
	return url.PathEscape(tube)
}

// TubeOf returns the tube of an unescaped segment.
func TubeOf(segment string) string { return noTildes.Replace(segment) }

var tildes, noTildes = strings.NewReplacer(".", "~2E", "/", "~2F"), strings.NewReplacer("~2E", ".", "~2F", "/")

// Query sets the fields of the query of an operation with an id. Unknown parameters are
// an error, because they are probably misspelled.
func (p *Plan) Query(in any, id, raw string) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return mistakef("the query is not well-formed")
	}
	names := p.names()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(names, name) {
			return mistakef("unknown parameter %.40q; %s accepts %q", name, id, names)
		}
		if len(query[name]) > 1 {
			return mistakef("the parameter %s is given more than once", name)
		}
	}
	for i := range p.Fields {
		if f := &p.Fields[i]; f.Place == Query {
			if err := f.read(f.Of(in), query); err != nil {
				return err
			}
		}
	}
	return nil
}

// read sets a field from its parameter.
func (f *Field) read(to reflect.Value, query url.Values) error {
	text := query.Get(f.Name)
	switch {
	case f.Type == reflect.TypeFor[*string]():
		if query.Has(f.Name) {
			to.Set(reflect.ValueOf(&text))
		}
		return nil
	case text == "" && !f.Required() && !(query.Has(f.Name) && f.Tag.Get("as") == "State"):
		if text = f.Default; text == "" {
			return nil
		}
	case f.Enum != nil && !slices.Contains(f.Enum, text):
		return f.wanted()
	}
	if f.Type.Kind() == reflect.Pointer {
		to.Set(reflect.New(f.Type.Elem()))
		to = to.Elem()
	}
	switch to.Kind() {
	case reflect.String:
		to.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return f.wanted()
		}
		to.SetBool(text == "true")
	default:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || f.bounded && (n < f.min || n > f.max) {
			return f.wanted()
		}
		to.SetInt(n)
	}
	return nil
}

// Body sets the fields of the body. A negative length means that the length is unknown.
func (p *Plan) Body(in any, contentType string, length int64, body io.Reader) error {
	kind, _, _ := mime.ParseMediaType(contentType)
	if p.raw != nil {
		if kind != p.raw.Name {
			return &BindError{http.StatusUnsupportedMediaType, "want a job in JSON on each line: Content-Type: " + p.raw.Name}
		}
		p.raw.Of(in).Set(reflect.ValueOf(body))
		return nil
	}
	if length == 0 && !p.NeedsBody() && (kind == "" || kind == "application/json") {
		return nil
	}
	if kind != "application/json" {
		return &BindError{http.StatusUnsupportedMediaType, "want a JSON object: Content-Type: application/json"}
	}
	named, err := members(body)
	if err != nil {
		return err
	}
	return p.Members(in, named)
}

// members reads a single JSON object.
func members(body io.Reader) (map[string]json.RawMessage, error) {
	var named map[string]json.RawMessage
	d := json.NewDecoder(body)
	if err := d.Decode(&named); err != nil {
		return nil, decodeMistake(err)
	}
	if named == nil {
		return nil, errNoObject
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, mistakef("data follows the JSON object in the body")
	}
	return named, nil
}

var errNoObject error = mistakef("the body is not a JSON object of the form that openapi.yaml describes")

// decodeMistake describes the error of a body.
func decodeMistake(err error) error {
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &BindError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has more than %d bytes", e.Limit)}
	}
	if e, ok := errors.AsType[*BindError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return mistakef("the body is not valid JSON, from byte %d on", e.Offset)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return mistakef("the body is empty or incomplete; want a JSON object")
	}
	return errNoObject
}

// Members sets the fields for the members of an object, and checks them. Unlike in
// package encoding/json, names must match exactly, and unknown names are an error.
func (p *Plan) Members(in any, named map[string]json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(named)) {
		i := slices.IndexFunc(p.Fields, func(f Field) bool { return f.Place == Member && f.Name == name })
		if i < 0 || name == "" {
			return mistakef("unknown member %.40q", name)
		}
		f := &p.Fields[i]
		if err := json.Unmarshal(named[name], f.Of(in).Addr().Interface()); err != nil {
			return mistakef("%s: want %s", name, Wanted(f.Type, err))
		}
	}
	return p.check(in)
}

// check checks the members of a body against the bounds in their tags: required, enum,
// min, max and maxitems.
func (p *Plan) check(in any) error {
	for i := range p.Fields {
		f := &p.Fields[i]
		if f.Place != Member {
			continue
		}
		of, left := reflect.Indirect(f.Of(in)), f.Of(in).IsZero()
		switch {
		case left && !f.Required():
		case left,
			f.Enum != nil && !slices.Contains(f.Enum, of.String()),
			f.bounded && (of.Uint() < uint64(f.min) || of.Uint() > uint64(f.max)),
			of.Kind() == reflect.Slice && f.items > 0 && of.Len() > f.items:
			return f.wanted()
		}
	}
	return nil
}

// A Wanter is an error that describes the expected value.
type Wanter interface {
	error
	Wanted() string
}

// Wanted describes the values of a member of type t. err is the error of package
// encoding/json.
func Wanted(t reflect.Type, err error) string {
	if e, ok := errors.AsType[Wanter](err); ok {
		return e.Wanted()
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Struct:
		return "an object"
	case reflect.Map:
		return "an object whose values are strings"
	case reflect.Slice:
		switch t.Elem().Kind() {
		case reflect.String:
			return "a list of strings"
		case reflect.Uint8:
			return "base64"
		}
		return "a list of numbers"
	case reflect.Uint32:
		return "a number from 0 to 4294967295"
	}
	return "a whole number"
}
