package worker

import (
	"context"
	"errors"
	"testing"
)

// A delete that another slot has sent is told also if the server has come back without
// batches meanwhile.
func TestDeleteAnsweredThenPlain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so that it takes no job
	why := errors.New("why")
	s := &seat{hub: &hub{addr: "none", plain: true}, del: answered, err: why}
	var told []error
	s.mu.Lock()
	job, err := s.take(ctx, func(err error) { told = append(told, err) })
	s.mu.Unlock()
	if err == nil {
		t.Errorf("took %v", job)
	}
	if len(told) != 1 || told[0] != why {
		t.Errorf("told %v, want %v once", told, why)
	}
}
