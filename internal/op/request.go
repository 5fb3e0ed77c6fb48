package op

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Fill sets the defaults in an input that a program has created, and checks it like Query
// and Body.
func (p *Plan) Fill(in any) error {
	for i := range p.Fields {
		f := &p.Fields[i]
		if f.Place != Query || f.Type.Kind() == reflect.Pointer {
			continue
		}
		to := f.Of(in)
		query := url.Values{}
		if !to.IsZero() {
			query.Set(f.Name, textOf(to))
		}
		if err := f.read(to, query); err != nil {
			return err
		}
	}
	return p.check(in)
}

// Request formats an input as a request. It returns the target with path and query, the
// body, and its content type. path contains the names of its segments in braces. body is
// nil if the request has no body.
func (p *Plan) Request(in any, path string) (target string, body io.Reader, contentType string) {
	query := url.Values{}
	var members []string
	for i := range p.Fields {
		f := &p.Fields[i]
		of := f.Of(in)
		switch {
		case f.Place == Path:
			path = strings.ReplaceAll(path, "{"+f.Name+"}", segmentOf(of))
		case of.IsZero():
		case f.Place == Query:
			query.Set(f.Name, textOf(reflect.Indirect(of)))
		case f.Place == Member:
			text, err := json.Marshal(of.Interface())
			if err != nil {
				panic(fmt.Sprintf("op: %s: %v", f.Name, err)) // numbers and strings always have a JSON form
			}
			members = append(members, fmt.Sprintf("%q:%s", f.Name, text))
		case f.Place == Body:
			body, contentType = of.Interface().(io.Reader), f.Name
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	if len(members) > 0 || p.raw == nil && p.NeedsBody() {
		slices.Sort(members)
		body, contentType = bytes.NewReader([]byte("{"+strings.Join(members, ",")+"}")), "application/json"
	}
	return path, body, contentType
}

func segmentOf(v reflect.Value) string {
	if v.Kind() == reflect.String {
		return Segment(v.String())
	}
	return textOf(v)
}

func textOf(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10)
	}
	return strconv.FormatInt(v.Int(), 10)
}
