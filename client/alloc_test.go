//go:build !race

package client_test

import (
	"context"
	"testing"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/test/conformance"
)

// TestAllocs checks that each command, with a context that can be cancelled, allocates
// only the data that the caller keeps. The race detector also allocates.
func TestAllocs(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := dial(t, conformance.Beanstalkd(t), nil) // in another process, whose allocations do not count
	job := client.NewJob{Body: make([]byte, 64)}
	get(c.Put(ctx, job))
	held := get(c.Reserve(t.Context()))
	var id uint64
	for _, tc := range []struct {
		name string
		want float64
		do   func()
	}{
		{"put", 0, func() { id = get(c.Put(ctx, job)) }},
		{"touch", 0, func() { must(t, held.Touch(ctx)) }},
		{"peek", 2, func() { get(c.Peek(ctx, id)) }},
		{"reserve and delete", 2, func() { must(t, get(c.ReserveTimeout(ctx, 0)).Delete(ctx)) }},
		{"put, delete and reserve", 4, func() {
			get(c.Put(ctx, job))
			id = get(c.DeleteAndReserve(ctx, []uint64{id}, 1, nil))[0].ID
		}},
	} {
		if got := testing.AllocsPerRun(100, tc.do); got > tc.want {
			t.Errorf("%s makes %v allocations, want at most %v", tc.name, got, tc.want)
		}
	}
}
