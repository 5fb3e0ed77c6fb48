package client

import (
	"context"
	"fmt"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// PutMany puts jobs in one round trip for each server, or a few if there are
// thousands. keys holds the key of each job, as in [Servers.Put]; nil means no keys. The
// ids are in the order of the jobs. If it is certain that a job was not put, the other
// servers are tried. If one of the jobs is invalid, nothing is sent; otherwise the error
// is a [BatchError] with the error of each put that failed.
func (s *Servers) PutMany(ctx context.Context, keys []string, jobs []NewJob) ([]JobID, error) {
	if keys != nil && len(keys) != len(jobs) {
		return nil, commandError("", &putMany, fmt.Errorf("%w: %d keys for %d jobs", ErrInvalid, len(keys), len(jobs)))
	}
	for i := range jobs {
		if _, err := jobs[i].request(defaultTube); err != nil {
			return nil, commandError("", &putMany, fmt.Errorf("job %d: %w", i, err))
		}
	}
	orders := make([][]*node, len(jobs)) // the servers that each job may still be put to
	for i := range jobs {
		if keys == nil || keys[i] == "" {
			orders[i] = reachableFirst(s.rotated())
		} else {
			orders[i] = reachableFirst(s.order(keys[i]))
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
			n.observe(err)
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

// ReserveMany takes up to limit jobs of any of the servers, of these tubes, or of
// "default" if there are none, and at most [MaxReserved] from each server. If no job is
// ready, it waits up to d for one, as [Servers.ReserveTimeout] does; it does not wait for
// further jobs. It returns at least one job or an error. The jobs of a server share one
// connection, as [Pool.ReserveMany] says; [DeleteJobs] deletes them.
func (s *Servers) ReserveMany(ctx context.Context, limit int, d time.Duration, tubes ...string) ([]*Job, error) {
	if _, err := count(limit); err != nil {
		return nil, reserveError("", err)
	}
	jobs, waited, err := s.reserve(ctx, limit, d, tubes)
	if waited && err == nil && limit > 1 {
		more, _ := s.sweep(ctx, limit-1, tubes) // jobs that are ready by now
		jobs = append(jobs, more...)
	}
	return jobs, err
}

// DeleteMany deletes jobs in one round trip for each of their servers, or a few if
// there are thousands. Jobs that were reserved are deleted with [DeleteJobs]. The error is
// a [BatchError] with the error of each delete that failed.
func (s *Servers) DeleteMany(ctx context.Context, ids []JobID) error {
	return spread(len(ids), func(i int) string { return ids[i].Server }, func(addr string, places []int) error {
		p := s.Pool(addr)
		if p == nil {
			return &Error{Verb: wire.Delete.String(), Addr: addr, Err: errNotInSet}
		}
		numbers := make([]uint64, len(places))
		for k, i := range places {
			numbers[k] = ids[i].ID
		}
		return p.DeleteMany(ctx, numbers)
	})
}
