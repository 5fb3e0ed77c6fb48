package jobjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// A MemberError says what is wrong with a member of an object. It repeats nothing of the
// member's value.
type MemberError struct {
	Name   string
	Wanted string // empty: there is no such member
}

// Error implements error.
func (e *MemberError) Error() string {
	if e.Wanted == "" {
		return fmt.Sprintf("unknown member %.40q", e.Name)
	}
	return e.Name + ": want " + e.Wanted
}

// Members puts the members of an object into the struct that into points to. Their names
// must be as they are described: package json alone would take them in any case, and pass
// over those that it does not know. The error is a *MemberError.
func Members(members map[string]json.RawMessage, into any) error {
	fields := reflect.ValueOf(into).Elem()
	known := make(map[string]reflect.Value, fields.NumField())
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Type().Field(i).Tag.Get("json"), ",")
		known[name] = fields.Field(i)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		field, ok := known[name]
		if !ok || name == "" {
			return &MemberError{Name: name}
		}
		if err := json.Unmarshal(members[name], field.Addr().Interface()); err != nil {
			return &MemberError{name, wanted(field.Type(), err)}
		}
	}
	return nil
}

// wanted says what a field takes.
func wanted(t reflect.Type, err error) string {
	if errors.Is(err, errNotUnicode) {
		return errNotUnicode.Error()
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			return "a list of numbers"
		}
		return "base64"
	case reflect.Uint32:
		return "a number from 0 to 4294967295"
	}
	return "a whole number"
}
