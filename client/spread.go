package client

import (
	"context"
	"errors"
	"sync"
)

// spread splits a batch of n commands into one for each group, runs them at the same
// time, and returns the errors of the whole: nil, or a *BatchError. f gets the places
// of its commands in the batch and returns an error as a batch does.
func spread[K comparable](n int, groupOf func(i int) K, f func(group K, places []int) error) error {
	groups := make(map[K][]int)
	for i := range n {
		g := groupOf(i)
		groups[g] = append(groups[g], i)
	}
	errs := make([]error, n)
	var wg sync.WaitGroup
	for g, places := range groups {
		wg.Go(func() { scatter(errs, places, f(g, places)) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return &BatchError{errs}
		}
	}
	return nil
}

// scatter puts the errors of a part of a batch into their places.
func scatter(errs []error, places []int, err error) {
	batch, ok := errors.AsType[*BatchError](err)
	for k, i := range places {
		if ok {
			errs[i] = batch.Errs[k]
		} else {
			errs[i] = err
		}
	}
}

// pick returns the elements at some places.
func pick[T any](all []T, places []int) []T {
	some := make([]T, len(places))
	for k, i := range places {
		some[k] = all[i]
	}
	return some
}

// DeleteJobs deletes jobs that were reserved, of a [Conn], a [Pool] or [Servers], in
// one round trip for each connection that holds some of them, or a few if there are
// thousands. The error is a [BatchError] with the error of each delete that failed, as
// [Job.Delete] returns it.
func DeleteJobs(ctx context.Context, jobs []*Job) error {
	return spread(len(jobs), func(i int) *Conn { return jobs[i].conn }, func(c *Conn, places []int) error {
		ids := make([]uint64, len(places))
		for k, i := range places {
			ids[k] = jobs[i].ID
		}
		errs := make([]error, len(places))
		scatter(errs, upTo(len(places)), c.DeleteMany(ctx, ids))
		for k, i := range places {
			errs[k] = jobs[i].finish(errs[k])
		}
		return &BatchError{errs}
	})
}

// upTo returns the numbers below n.
func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
