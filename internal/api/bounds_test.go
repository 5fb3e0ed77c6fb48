package api

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// TestBounds sends each operation a value outside each bound that openapi.yaml specifies
// for its input, by HTTP and within the process. The rest of the input is valid.
func TestBounds(t *testing.T) {
	r := start(t, Options{})
	r.in(func(e *engine.Engine, now int64) { e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9}, nil) })
	open, _ := access.New(access.Config{})
	within := r.Open(access.Caller{Identity: open.Nobody()}, "")
	tried := 0
	for _, o := range operations() {
		for i := range o.plan.Fields {
			f := &o.plan.Fields[i]
			for _, value := range outside(f) {
				tried++
				if status := r.boundary(o, f, value); status != http.StatusBadRequest {
					t.Errorf("%s: %s = %.80s: status %d, want 400", o.ID, f.Name, value, status)
				}
				in := validInput(o)
				f.Of(in).SetZero()
				if f.Place == op.Path || json.Unmarshal(value, f.Of(in).Addr().Interface()) != nil {
					continue // the Go type does not permit the value
				}
				if f.Of(in).IsZero() && !f.Required() {
					continue // a Go program omits the field in this way
				}
				if err := within.Do(t.Context(), o.Route, in, reflect.New(o.out).Interface()); admin.StatusOf(err) != http.StatusBadRequest {
					t.Errorf("%s within the process: %s = %.80s: %v, want status 400", o.ID, f.Name, value, err)
				}
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d values: the tags are no longer read", tried)
	}
}

// outside returns JSON values that violate the description of the field. The value null
// stands for a missing member or parameter.
func outside(f *op.Field) (values []json.RawMessage) {
	add := func(v any) {
		text, _ := json.Marshal(v)
		values = append(values, text)
	}
	kind, list := f.Type, false
	for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice && kind.Elem().Kind() != reflect.Uint8 {
		list = list || kind.Kind() == reflect.Slice
		kind = kind.Elem()
	}
	number := func(tag string) uint64 { n, _ := strconv.ParseUint(f.Tag.Get(tag), 10, 64); return n }
	if f.Required() && f.Place != op.Path {
		add(nil)
	}
	if f.Enum != nil {
		add("nosuch")
	}
	switch as := f.Tag.Get("as"); {
	case as == "TubeName":
		add("two words")
		add(strings.Repeat("x", 201))
	case as == "PolicySettings", as == "ScheduleSettings":
		add(map[string]string{"nosuch": "1"})
	case as == "PolicySetting":
		add([]string{"nosuch"})
	case as == "ID":
		add("x")
	}
	if n := number("min"); n > 0 {
		add(n - 1)
	}
	if n := number("max"); n > 0 {
		add(n + 1)
	} else if kind.Kind() == reflect.Uint32 && !list {
		add(uint64(math.MaxUint32 + 1))
	}
	if n := number("maxlen"); n > 0 {
		add(strings.Repeat("x", int(n)+1))
	}
	if n := number("maxitems"); n > 0 {
		add(make([]int, n+1))
	}
	if f.Tag.Get("pattern") != "" {
		add("no such")
	}
	return values
}

// validInput returns an input of an operation with its required fields set.
func validInput(o *operation) any {
	in := reflect.New(o.in).Interface()
	for i := range o.plan.Fields {
		f := &o.plan.Fields[i]
		if !f.Required() || f.Place == op.Body {
			continue
		}
		switch of := f.Of(in); {
		case f.Enum != nil:
			of.SetString(f.Enum[0])
		case of.Kind() == reflect.String:
			of.SetString("mail")
		default:
			of.SetUint(1)
		}
	}
	if task, ok := in.(*admin.StartTask); ok {
		task.State = new("buried")
	}
	return in
}

// boundary sends an input with value in one field, and returns the status.
func (r *rig) boundary(o *operation, f *op.Field, value json.RawMessage) int {
	in := validInput(o)
	if f.Name == "ids" {
		in.(*admin.StartTask).State = nil
	}
	target, body, kind := o.plan.Request(in, o.path)
	text := strings.Trim(string(value), `"`)
	switch f.Place {
	case op.Path:
		target = strings.Replace(o.path, "{"+f.Name+"}", url.PathEscape(text), 1)
	case op.Query:
		to, _ := url.Parse(target)
		query := to.Query()
		if query.Set(f.Name, text); text == "null" {
			query.Del(f.Name)
		}
		to.RawQuery = query.Encode()
		target = to.String()
	case op.Member:
		members := map[string]json.RawMessage{}
		if body != nil {
			json.NewDecoder(body).Decode(&members)
		}
		if members[f.Name] = value; string(value) == "null" {
			delete(members, f.Name)
		}
		text, _ := json.Marshal(members)
		body, kind = strings.NewReader(string(text)), "application/json"
	}
	sent := ""
	if body != nil {
		b, _ := io.ReadAll(body)
		sent = string(b)
	}
	h := newRequest(o.method, target, sent)
	h.Header.Set("Content-Type", kind)
	status, _ := r.send(h, sent)
	return status
}
