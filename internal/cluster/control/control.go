package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cluster"
	"github.com/beanpole-mq/beanpole/internal/cluster/consistency"
	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/cluster/transport"
)

// What can be asked for.
const (
	DoStatus   = "status"   // the answer is an admin.Cluster
	DoAdd      = "add"      // a member: ID, Address; InPlaceOf if not 0. The answer is a raftlog.Membership
	DoRemove   = "remove"   // the member ID
	DoTransfer = "transfer" // the leadership to the member ID; 0: the one that has most of the log
	DoCheck    = "check"    // a step of a consistency check at the member ID: Check
	DoHealth   = "health"   // a report of the member that asks about itself: Health. The answer is empty
	DoSettings = "settings" // of the member that asks: Settings. The answer has the names of those that differ from the leader's
)

// A Request is what is asked for.
type Request struct {
	Do        string `json:"do"`
	ID        uint64 `json:"id,omitempty"`
	Address   string `json:"address,omitempty"`
	InPlaceOf uint64 `json:"in_place_of,omitempty"`
	IfThere   bool   `json:"if_there,omitempty"`  // Remove of a server that is not a member is no error
	Force     bool   `json:"force,omitempty"`     // Remove even if the other voters have no living majority
	PassedOn  bool   `json:"passed_on,omitempty"` // by a member that does not lead

	Check    *consistency.Request `json:"check,omitempty"`
	Settings map[string]string    `json:"settings,omitempty"`
	Health   *admin.MemberHealth  `json:"health,omitempty"`
}

// A Member is what is asked of a [cluster.Member].
type Member interface {
	Status() (cluster.Status, error)
	Lead() cluster.Leadership
	Watch() <-chan struct{}
	Membership() raftlog.Membership
	Add(ctx context.Context, added raftlog.Member) error
	Remove(ctx context.Context, id uint64) error
	Transfer(ctx context.Context, to uint64) error
	Health() admin.MemberHealth
	consistency.Member
}

// A Transport passes requests on; see [transport.Transport].
type Transport interface {
	Request(ctx context.Context, id uint64, body []byte) ([]byte, error)
}

// A Control answers what is asked of a member. Its exported fields are static.
type Control struct {
	Member    Member
	Directory *directory.Directory
	Transport Transport

	check    consistency.Session
	settings settingsDesk
	health   healthDesk
}

// Request answers another member, or a command.
func (c *Control) Request(ctx context.Context, from uint64, body []byte) ([]byte, error) {
	var r Request
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("not a request: %w", err)
	}
	switch {
	case r.Do == DoSettings:
		return json.Marshal(c.settings.take(from, r.Settings))
	case r.Do == DoHealth && r.Health != nil:
		c.health.take(from, *r.Health)
		return []byte("{}"), nil
	}
	reply, err := c.do(ctx, r)
	if err != nil {
		return nil, forPeople(err)
	}
	return json.Marshal(reply)
}

// forPeople returns an error without the name of package cluster in its text.
func forPeople(err error) error { return plain{err} }

type plain struct{ error }

func (e plain) Error() string { return strings.ReplaceAll(e.error.Error(), "cluster: ", "") }

func (e plain) Unwrap() error { return e.error }

func (c *Control) do(ctx context.Context, r Request) (reply any, err error) {
	switch r.Do {
	case DoStatus:
		return c.status(ctx, r)
	case DoCheck:
		return c.checkStep(ctx, r)
	}
	for {
		reply, err := c.try(ctx, r)
		if !errors.Is(err, errAgain) {
			return reply, err
		}
		// The member may be removed already, unless the change has not even begun.
		r.IfThere = r.IfThere || !errors.Is(err, cluster.ErrBusy)
		select {
		case <-time.After(againPause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// errAgain is wrapped by errors that pass: another change is under way, as that of a learner
// into a voter, or there will be another leader soon.
var errAgain = errors.New("nothing was changed; try again")

// againPause is how long a change waits before it is tried again.
const againPause = 100 * time.Millisecond

// try makes the change if this member leads, or passes it on to the leader.
func (c *Control) try(ctx context.Context, r Request) (reply any, err error) {
	lead, err := c.leader(ctx)
	if err != nil {
		return nil, err
	}
	isHere, passes := lead.Leader == c.Directory.ID || r.PassedOn, false
	if isHere {
		reply, err = c.change(ctx, r)
		passes = errors.Is(err, cluster.ErrBusy)
	} else {
		reply, err = c.passOn(ctx, lead.Leader, r)
		_, refused := errors.AsType[transport.RemoteError](err)
		passes = err != nil && !refused
	}
	if passes || errors.Is(err, cluster.ErrNotLeader) && !r.PassedOn {
		err = fmt.Errorf("%w: %w", errAgain, err)
	}
	return reply, err
}

// statusPatience is how long another member may take for its answer to DoStatus.
const statusPatience = 2 * time.Second

// status answers with what the leader knows. If this member knows no leader, another one
// may. If no member does, the answer is what this one knows.
func (c *Control) status(ctx context.Context, r Request) (reply any, err error) {
	own, err := c.Status()
	if err != nil || r.PassedOn {
		return own, err
	}
	next := []uint64{own.Leader}
	for _, m := range own.Members {
		next = append(next, m.ID)
	}
	for asked := map[uint64]bool{0: true}; len(next) > 0; {
		id := next[0]
		next = next[1:]
		if asked[id] {
			continue
		}
		asked[id] = true
		known, err := own, error(nil)
		if id != c.Directory.ID {
			known, err = c.statusOf(ctx, id, r)
		}
		switch {
		case err != nil:
		case known.Leader == id:
			return known, nil
		default:
			next = slices.Insert(next, 0, known.Leader)
		}
	}
	return own, nil
}

func (c *Control) statusOf(ctx context.Context, id uint64, r Request) (s admin.Cluster, err error) {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	reply, err := c.passOn(ctx, id, r)
	if err == nil {
		err = json.Unmarshal(reply, &s)
	}
	return s, err
}

func (c *Control) change(ctx context.Context, r Request) (reply any, err error) {
	switch r.Do {
	case DoAdd:
		return c.add(ctx, r)
	case DoRemove:
		return c.remove(ctx, r)
	case DoTransfer:
		return struct{}{}, c.transfer(ctx, r.ID)
	}
	return nil, fmt.Errorf("%q cannot be asked for: the members are of different versions", r.Do)
}

// leaderPatience is how long a change waits for a leader.
const leaderPatience = 10 * time.Second

// leader waits until there is a leader, and that is active if it is this member.
func (c *Control) leader(ctx context.Context) (cluster.Leadership, error) {
	ctx, cancel := context.WithTimeout(ctx, leaderPatience)
	defer cancel()
	for {
		changed := c.Member.Watch()
		lead := c.Member.Lead()
		if lead.Epoch != 0 || lead.Leader != 0 && lead.Leader != c.Directory.ID {
			return lead, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return lead, errors.New("the cluster has no leader at the moment, so nothing can be changed (see: beanpole cluster status)")
		}
	}
}

// passOn passes a request on to the leader.
func (c *Control) passOn(ctx context.Context, leader uint64, r Request) (reply json.RawMessage, err error) {
	r.PassedOn = true
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return c.Transport.Request(ctx, leader, body)
}

// checkStep does a step of a check at the member that the request names.
func (c *Control) checkStep(ctx context.Context, r Request) (any, error) {
	if r.ID == c.Directory.ID {
		return c.check.Do(c.Member, r.Check)
	}
	if r.PassedOn {
		return nil, fmt.Errorf("this is member %d, and not %d", c.Directory.ID, r.ID)
	}
	return c.passOn(ctx, r.ID, r)
}

// remove removes a member. A leader transfers the leadership first, and the new leader
// removes it.
func (c *Control) remove(ctx context.Context, r Request) (reply any, err error) {
	if !r.Force {
		s, err := c.Status()
		if err == nil {
			err = s.CheckRemove(r.ID)
		}
		if err != nil {
			return nil, err
		}
		r.Force = true // the new leader may have heard too few members to check again
	}
	if r.ID != c.Directory.ID || len(c.Member.Membership().Members) == 1 {
		err := c.Member.Remove(ctx, r.ID)
		if r.IfThere && errors.Is(err, cluster.ErrNotMember) {
			err = nil
		}
		return struct{}{}, err
	}
	if err := c.transfer(ctx, 0); err != nil {
		return nil, err
	}
	lead, err := c.leader(ctx)
	if err != nil {
		return nil, err
	}
	return c.passOn(ctx, lead.Leader, r)
}

// transferTries is how often a member is asked to lead: one that was just started declines.
const transferTries = 4

// transfer lets another member lead.
func (c *Control) transfer(ctx context.Context, to uint64) (err error) {
	if to == c.Directory.ID && c.Member.Lead().Epoch != 0 {
		return nil // it leads already
	}
	for range transferTries {
		if err = c.Member.Transfer(ctx, to); !errors.Is(err, cluster.ErrDeclined) {
			return err
		}
		lead, waitErr := c.leader(ctx) // it may have to be elected again
		if waitErr != nil {
			return waitErr
		}
		if lead.Leader != c.Directory.ID {
			return err
		}
	}
	return err
}

// Transfer lets the member with an id lead; 0 is the voter that has most of the log.
func (c *Control) Transfer(ctx context.Context, to uint64) error {
	if _, err := c.do(ctx, Request{Do: DoTransfer, ID: to}); err != nil {
		return forPeople(err)
	}
	return nil
}

// Status returns what this member knows.
func (c *Control) Status() (admin.Cluster, error) {
	known, err := c.Member.Status()
	if err != nil {
		return admin.Cluster{}, err
	}
	s := known.Cluster
	s.Members = slices.Clone(s.Members)
	for i := range s.Members {
		m := &s.Members[i]
		isSelf := m.ID == known.Self
		if isSelf || known.Leader == known.Self {
			m.MemberHealth = c.health.of(m.ID)
		}
		if !isSelf && known.Leader == known.Self {
			m.Differs = c.settings.of(m.ID)
		}
	}
	return s, nil
}

// add adds a member, and returns when it is a learner.
func (c *Control) add(ctx context.Context, r Request) (raftlog.Membership, error) {
	err := c.Member.Add(ctx, raftlog.Member{ID: r.ID, Address: r.Address, Replaces: r.InPlaceOf})
	return c.Member.Membership(), err
}
