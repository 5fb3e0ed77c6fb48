package consistency

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin/apitype"
)

// A Result is the result of Verify. Members with equal sums have the same queue.
type Result struct {
	Same    bool             `json:"same"` // all members were compared and have equal sums
	From    uint64           `json:"from"`
	Until   uint64           `json:"until"`
	Members []ComparedMember `json:"members"`
}

// A ComparedMember is the result for one member. Jobs changed by an entry after From and
// up to Until were not compared.
type ComparedMember struct {
	ID      uint64       `json:"id"`
	Address string       `json:"address"`
	Role    apitype.Role `json:"role"`
	Jobs    uint64       `json:"jobs"`    // number of compared jobs
	Changed uint64       `json:"changed"` // number of jobs, pauses and named texts that were not compared
	Digest  string       `json:"digest"`  // empty if the member was not compared
	Differs bool         `json:"differs"` // the member differs from the majority
	Problem string       `json:"problem,omitempty"`

	sums *Sums
}

// An Asker asks a member to perform a step of a check.
type Asker func(ctx context.Context, member uint64, r Request) (Reply, error)

// A verification is a check in progress.
type verification struct {
	ask         Asker
	name        uint64
	due         int64
	from, until uint64
	members     []ComparedMember
}

// stepPause is the pause between two polls of a member.
const stepPause = 50 * time.Millisecond

// Verify compares the queues of members while they serve clients.
func Verify(ctx context.Context, members []apitype.ClusterMember, ask Asker) Result {
	v := verification{ask: ask, name: rand.Uint64() >> 11} // #nosec G404 -- the name of a check is not secret
	for _, m := range members {
		v.members = append(v.members, ComparedMember{ID: m.ID, Address: m.Address, Role: m.Role})
	}
	v.each(func(m *ComparedMember) error {
		reply, err := v.step(ctx, m, Request{Step: stepBegin, Due: v.due})
		v.due, v.from = max(v.due, reply.Due), max(v.from, reply.From)
		return err
	})
	v.await(ctx, v.from, Request{Step: stepSums, From: v.from}, func(_ *ComparedMember, r *Reply) bool {
		v.until = max(v.until, r.Until)
		return r.Until != 0
	})
	v.await(ctx, v.until, Request{Step: stepSums, From: v.from, Until: v.until}, func(m *ComparedMember, r *Reply) bool {
		m.sums = r.Sums
		return r.Sums != nil
	})
	v.each(func(m *ComparedMember) error {
		v.step(ctx, m, Request{Step: stepEnd}) // otherwise, the member ends the check at its time limit
		return nil
	})
	return v.compare()
}

// each calls f for each member that has no problem yet.
func (v *verification) each(f func(m *ComparedMember) error) {
	for i := range v.members {
		if m := &v.members[i]; m.Problem == "" {
			if err := f(m); err != nil {
				m.Problem, m.sums = err.Error(), nil
			}
		}
	}
}

func (v *verification) step(ctx context.Context, m *ComparedMember, r Request) (Reply, error) {
	r.Name = v.name
	reply, err := v.ask(ctx, m.ID, r)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // the member is not the cause
	}
	return reply, err
}

// stuckAfter is the time without progress after which await gives up on a member that
// lags behind another.
const stuckAfter = 10 * time.Second

// await repeats a step on each member until done returns true for its reply. A member can
// reply only after it has applied the entry needs.
func (v *verification) await(ctx context.Context, needs uint64, r Request, done func(*ComparedMember, *Reply) bool) {
	answered := make(map[uint64]bool)
	applied, moved := make(map[uint64]uint64), make(map[uint64]time.Time)
	for {
		all := true
		v.each(func(m *ComparedMember) error {
			if answered[m.ID] {
				return nil
			}
			reply, err := v.step(ctx, m, r)
			if err != nil {
				return err
			}
			answered[m.ID] = done(m, &reply)
			all = all && answered[m.ID]
			if reply.Applied != applied[m.ID] {
				applied[m.ID], moved[m.ID] = reply.Applied, time.Now()
			}
			if !answered[m.ID] && reply.Applied != 0 && reply.Applied < needs && time.Since(moved[m.ID]) >= stuckAfter {
				return fmt.Errorf("the member is stuck at entry %d for %v; another member has entry %d (see: beanpole cluster status)", reply.Applied, stuckAfter, needs)
			}
			return nil
		})
		if all {
			return
		}
		select {
		case <-time.After(stepPause):
		case <-ctx.Done():
			v.each(func(m *ComparedMember) error {
				if answered[m.ID] {
					return nil
				}
				return context.Cause(ctx)
			})
			return
		}
	}
}

// compare compares the sums of each member with the majority's sums.
func (v *verification) compare() Result {
	c := Result{Same: true, From: v.from, Until: v.until, Members: v.members}
	usual := v.usual()
	for i := range c.Members {
		m := &c.Members[i]
		if m.sums == nil {
			c.Same = false
			continue
		}
		m.Jobs, m.Changed, m.Digest = m.sums.Jobs, m.sums.Changed, fmt.Sprintf("%016x", m.sums.Hash)
		if m.Differs = *m.sums != usual; m.Differs {
			c.Same = false
		}
	}
	return c
}

// usual returns the sums of the largest group of members with equal sums. If several
// groups have the same size, it prefers the leader's group.
func (v *verification) usual() (most Sums) {
	votes := make(map[Sums]int)
	for _, m := range v.members {
		if m.sums == nil {
			continue
		}
		votes[*m.sums] += 2
		if m.Role == apitype.Leader {
			votes[*m.sums]++
		}
		if votes[*m.sums] > votes[most] {
			most = *m.sums
		}
	}
	return most
}
