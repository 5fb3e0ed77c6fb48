package jobjson

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/op"
)

// unmarshal parses an object that must contain only fields of Job.
func unmarshal(object []byte, j *Job) error {
	d := json.NewDecoder(bytes.NewReader(object))
	d.DisallowUnknownFields()
	if err := d.Decode(j); err != nil {
		return whyNot(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("not a job in JSON: data follows the object")
	}
	return nil
}

// whyNot describes an error of package encoding/json.
func whyNot(err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s: want %s", cmp.Or(e.Field, "not a job in JSON"), op.Wanted(e.Type, err))
	}
	if _, ok := errors.AsType[op.Wanter](err); ok {
		return fmt.Errorf("body: want %w", err)
	}
	if _, ok := errors.AsType[base64.CorruptInputError](err); ok {
		return errors.New("body_base64: want base64")
	}
	return fmt.Errorf("not a job in JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
}
