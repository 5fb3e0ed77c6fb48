package jobjson

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/jsonscan"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// fields has one bit per field of Job, by JSON name.
var fields = func() map[string]uint32 {
	all := make(map[string]uint32)
	for i, f := range reflect.VisibleFields(reflect.TypeFor[Job]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		all[name] = 1 << i
	}
	return all
}()

// unmarshal parses an object that must contain only fields. It reads each object only
// twice, because an import has millions of them.
func unmarshal(object []byte, j *Job) error {
	if object = bytes.TrimSpace(object); len(object) == 0 || object[0] != '{' {
		return errors.New("not a job in JSON: want an object")
	}
	if err := json.Unmarshal(object, j); err != nil {
		return whyNot(err)
	}
	seen := uint32(0)
	for key := range jsonscan.Members(object) {
		bit, ok := fields[string(key[1:len(key)-1])]
		if !ok {
			var name string
			if json.Unmarshal(key, &name) == nil {
				bit, ok = fields[name]
			}
			if !ok {
				return fmt.Errorf("unknown member %.40q", name)
			}
		}
		if seen&bit != 0 {
			return errors.New("duplicate member")
		}
		seen |= bit
	}
	return nil
}

// whyNot describes an error of package encoding/json.
func whyNot(err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s: want %s", e.Field, op.Wanted(e.Type, err))
	}
	if _, ok := errors.AsType[op.Wanter](err); ok {
		return fmt.Errorf("body: want %w", err)
	}
	if _, ok := errors.AsType[base64.CorruptInputError](err); ok {
		return errors.New("body_base64: want base64")
	}
	return fmt.Errorf("not a job in JSON: %w", err)
}
