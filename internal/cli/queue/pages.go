package queue

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client"
)

// bodyBytes is how many bytes of bodies are asked for in a round trip, give or take
// one body.
const bodyBytes = 8 << 20

// scanOrder is the order in which the lists of all states are read so that each job
// is in one of them at least that changes its state once meanwhile: workers take
// ready jobs, and what was delayed or buried becomes ready.
var scanOrder = []client.State{client.StateReserved, client.StateBuried, client.StateDelayed, client.StateReady, client.StateReserved}

// pages calls each with the jobs that a scan looks for, as the server lists them. The
// error is client.ErrUnknownCommand, and nothing was done, if it cannot.
func (sc *scan) pages(ctx context.Context, c *client.Conn, each eachFound) error {
	tubes := []string{sc.tube}
	if sc.tube == "" {
		var err error
		if tubes, err = c.ListTubes(ctx); err != nil {
			return err
		}
	}
	states := sc.states
	if states == nil {
		states = scanOrder
	}
	seen := make(map[uint64]struct{}) // a job may be in several lists
	for _, tube := range tubes {
		if sc.tube == "" && strings.HasPrefix(tube, probePrefix) {
			continue
		}
		for _, state := range states {
			more, err := sc.pagesOf(ctx, c, tube, state, seen, each)
			if err != nil || !more {
				return err
			}
		}
	}
	return nil
}

// pagesOf is pages for one list.
func (sc *scan) pagesOf(ctx context.Context, c *client.Conn, tube string, state client.State, seen map[uint64]struct{}, each eachFound) (more bool, err error) {
	limit := client.MaxListed
	if sc.first > 0 {
		limit = min(limit, sc.first)
	}
	for cursor := ""; ; {
		asked := time.Now()
		page, err := c.ListJobs(ctx, client.Selection{Tube: tube, State: state, Limit: limit}, cursor)
		if errors.Is(err, client.ErrNotFound) {
			return true, nil // the tube has gone
		}
		if err != nil {
			return false, err
		}
		at := span{asked, time.Now()}
		last := len(page) < limit
		if !last {
			cursor = page[limit-1].Cursor
		}
		for len(page) > 0 {
			var batch []found
			for bytes := int64(0); len(page) > 0 && len(batch) < bodyBatch && bytes < bodyBytes; page = page[1:] {
				j := &page[0]
				if _, again := seen[j.ID]; again {
					continue
				}
				seen[j.ID] = struct{}{}
				batch = append(batch, found{JobStats: &j.JobStats, at: at})
				bytes += j.Size
			}
			jobs, err := sc.look(ctx, c, batch)
			if err != nil {
				return false, err
			}
			if more, err := each(jobs); err != nil || !more {
				return false, err
			}
			if sc.progress != nil {
				sc.progress(uint64(len(seen)), sc.total)
			}
		}
		if last {
			return true, nil
		}
	}
}

// count notes how many jobs there are, for the progress.
func (sc *scan) count(ctx context.Context, c *client.Conn) error {
	if sc.tube == "" {
		st, err := c.Stats(ctx)
		if err == nil {
			sc.total = st.JobsReady + st.JobsReserved + st.JobsDelayed + st.JobsBuried
		}
		return err
	}
	st, err := c.StatsTube(ctx, sc.tube)
	if err == nil {
		sc.total = st.JobsReady + st.JobsReserved + st.JobsDelayed + st.JobsBuried
	}
	return err
}
