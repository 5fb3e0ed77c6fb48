package client

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// PutMany puts jobs in one round trip for each server, or a few if there are
// thousands. keys has the key of each job, as [Servers.Put] has it; nil for none. Ids
// come in the order of the jobs. Where it is certain that a job was not put, the other
// servers are tried. If one of the jobs is invalid, nothing is sent; otherwise an error
// is a [BatchError] with that of each put that failed.
func (s *Servers) PutMany(ctx context.Context, keys []string, jobs []NewJob) ([]JobID, error) {
	if keys != nil && len(keys) != len(jobs) {
		return nil, fmt.Errorf("%w: %d keys for %d jobs", ErrInvalid, len(keys), len(jobs))
	}
	for i := range jobs {
		if _, err := jobs[i].request(defaultTube); err != nil {
			return nil, fmt.Errorf("job %d: %w", i, err)
		}
	}
	orders := make([][]*node, len(jobs)) // the servers that each job may still be put to
	for i := range jobs {
		if keys == nil || keys[i] == "" {
			orders[i] = awakeFirst(s.rotated())
		} else {
			orders[i] = awakeFirst(s.order(keys[i]))
		}
	}
	ids := make([]JobID, len(jobs))
	errs := make([]error, len(jobs))
	for left := upTo(len(jobs)); len(left) > 0; {
		scatter(errs, left, spread(len(left), func(k int) *node { return orders[left[k]][0] }, func(n *node, places []int) error {
			places = pick(left, places)
			put, err := n.PutMany(ctx, pick(jobs, places))
			for k, i := range places {
				if put != nil && put[k] != 0 {
					ids[i] = JobID{n.addr, put[k]}
				}
			}
			n.hear(err)
			return err
		}))
		var again []int
		for _, i := range left {
			if orders[i] = orders[i][1:]; mayPutElsewhere(errs[i]) && len(orders[i]) > 0 {
				again = append(again, i)
			}
		}
		left = again
	}
	for _, err := range errs {
		if err != nil {
			return ids, &BatchError{errs}
		}
	}
	return ids, nil
}

// ReserveMany takes up to max jobs of any of the servers, of these tubes, or of
// "default" if there are none. If there is no job it waits up to d for the first, as
// [Servers.ReserveTimeout] does, but never for a second. It returns at least one job or
// an error. The jobs of a server share one connection, as [Pool.ReserveMany] says;
// [DeleteJobs] deletes them.
func (s *Servers) ReserveMany(ctx context.Context, max int, d time.Duration, tubes ...string) ([]*Job, error) {
	if max <= 0 {
		return nil, fmt.Errorf("%w: %d jobs", ErrInvalid, max)
	}
	if _, err := timeout(d); err != nil {
		return nil, err
	}
	jobs, err := s.sweep(ctx, max, tubes)
	if d == 0 || !errors.Is(err, ErrTimedOut) {
		return jobs, err
	}
	first, err := s.await(ctx, d, tubes)
	if err != nil {
		return nil, err
	}
	jobs = []*Job{first}
	if max > 1 {
		more, _ := s.sweep(ctx, max-1, tubes) // what there is
		jobs = append(jobs, more...)
	}
	return jobs, nil
}

// DeleteMany deletes jobs in one round trip for each of their servers, or a few if
// there are thousands. Jobs that were reserved are deleted with [DeleteJobs]. An error is
// a [BatchError] with the error of each delete that failed.
func (s *Servers) DeleteMany(ctx context.Context, ids []JobID) error {
	return spread(len(ids), func(i int) string { return ids[i].Server }, func(addr string, places []int) error {
		p, err := s.of(ids[places[0]])
		if err != nil {
			return err
		}
		numbers := make([]uint64, len(places))
		for k, i := range places {
			numbers[k] = ids[i].ID
		}
		return p.DeleteMany(ctx, numbers)
	})
}
