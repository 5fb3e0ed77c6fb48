package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin/apitype"
	"github.com/beanpole-mq/beanpole/internal/cluster"
	"github.com/beanpole-mq/beanpole/internal/cluster/consistency"
	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/cluster/transport"
)

// The operations of a Request.
const (
	DoStatus   = "status"   // returns an apitype.Cluster
	DoAdd      = "add"      // adds the member ID with Address; InPlaceOf is optional. Returns a raftlog.Membership
	DoRemove   = "remove"   // removes the member ID
	DoTransfer = "transfer" // transfers the leadership to the member ID; 0 means the voter with the longest log
	DoCheck    = "check"    // performs the step Check of a consistency check on the member ID
	DoReport   = "report"   // stores Health and Settings of the sender
)

// A Request asks a member to perform an operation.
type Request struct {
	Do        string `json:"do"`
	ID        uint64 `json:"id,omitempty"`
	Address   string `json:"address,omitempty"`
	InPlaceOf uint64 `json:"in_place_of,omitempty"`
	IfThere   bool   `json:"if_there,omitempty"`  // DoRemove: do not return an error if the server is not a member
	Force     bool   `json:"force,omitempty"`     // DoRemove: remove the member even if that leaves fewer reachable voters than a majority
	PassedOn  bool   `json:"passed_on,omitempty"` // a member that is not the leader has forwarded the request

	Check    *consistency.Request  `json:"check,omitempty"`
	Settings map[string]string     `json:"settings,omitempty"`
	Health   *apitype.MemberHealth `json:"health,omitempty"`
}

// A Replica performs the operations. It is a [cluster.Member].
type Replica interface {
	Status() (cluster.Status, error)
	Lead() cluster.Leadership
	Watch() <-chan struct{}
	Membership() raftlog.Membership
	Add(ctx context.Context, added raftlog.MemberInfo) error
	Remove(ctx context.Context, id uint64) error
	Transfer(ctx context.Context, to uint64) error
	Health() apitype.MemberHealth
	consistency.Replica
}

// A Transport forwards requests; see [transport.Transport].
type Transport interface {
	Request(ctx context.Context, id uint64, body []byte) ([]byte, error)
}

// A Control answers requests of other members and of commands. Its exported fields must
// not change.
type Control struct {
	Member    Replica
	Directory *directory.Directory
	Transport Transport

	check   consistency.Session
	reports reportStore
}

// Request answers a request of another member or of a command.
func (c *Control) Request(ctx context.Context, from uint64, body []byte) ([]byte, error) {
	var r Request
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("invalid request: %w", err)
	}
	if r.Do == DoReport && r.Health != nil {
		c.reports.add(from, report{*r.Health, r.Settings})
		return []byte("{}"), nil
	}
	return c.perform(ctx, r)
}

// perform performs an operation and encodes its result.
func (c *Control) perform(ctx context.Context, r Request) ([]byte, error) {
	reply, err := c.do(ctx, r)
	if err != nil {
		return nil, plain{err}
	}
	return json.Marshal(reply)
}

// A plain error omits the prefix of package cluster, for display.
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
		// After any error except ErrBusy, the member might already have been removed.
		r.IfThere = r.IfThere || !errors.Is(err, cluster.ErrBusy)
		select {
		case <-time.After(againPause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// errAgain is wrapped by temporary errors: another change of the membership is in
// progress, or the leader has changed.
var errAgain = errors.New("the members were not changed; try again")

// againPause is the pause before another attempt of a change.
const againPause = 100 * time.Millisecond

// try makes the change if this member is the leader. Otherwise, it forwards the request
// to the leader.
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

// statusPatience is the time limit for another member's answer to DoStatus.
const statusPatience = 2 * time.Second

// status returns the leader's view of the cluster. If this member has no leader, status
// asks the other members. If no member has a leader, it returns this member's view, with
// the members that did not answer as unreachable.
func (c *Control) status(ctx context.Context, r Request) (reply any, err error) {
	own, err := c.Status()
	if err != nil || r.PassedOn {
		return own, err
	}
	ids := []uint64{own.Leader} // usually the answer
	for _, m := range own.Members {
		ids = append(ids, m.ID)
	}
	for _, id := range ids {
		known, err := own, error(nil)
		if id != c.Directory.ID {
			known, err = c.statusOf(ctx, id, r)
		}
		if err == nil && id != 0 && known.Leader == id {
			return known, nil
		}
		if i := slices.IndexFunc(own.Members, func(m apitype.ClusterMember) bool { return m.ID == id }); i >= 0 && err != nil {
			own.Members[i].Reachable = false
		}
	}
	return own, nil
}

func (c *Control) statusOf(ctx context.Context, id uint64, r Request) (s apitype.Cluster, err error) {
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
		err := c.Member.Add(ctx, raftlog.MemberInfo{ID: r.ID, Address: r.Address, Replaces: r.InPlaceOf})
		return c.Member.Membership(), err
	case DoRemove:
		return c.remove(ctx, r)
	case DoTransfer:
		return struct{}{}, c.transfer(ctx, r.ID)
	}
	return nil, fmt.Errorf("unknown operation %q: the members have different versions", r.Do)
}

// leaderPatience is the time that a change waits for a leader.
const leaderPatience = 10 * time.Second

// leader waits until the cluster has a leader. If this member is the leader, it also
// waits until the member is active.
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
			return lead, errors.New("the cluster has no leader, so its members cannot be changed now (see: beanpole cluster status)")
		}
	}
}

// passOn forwards a request to the leader.
func (c *Control) passOn(ctx context.Context, leader uint64, r Request) (reply json.RawMessage, err error) {
	r.PassedOn = true
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return c.Transport.Request(ctx, leader, body)
}

// checkStep performs a step of a consistency check on the member r.ID.
func (c *Control) checkStep(ctx context.Context, r Request) (any, error) {
	if r.ID == c.Directory.ID {
		return c.check.Do(c.Member, r.Check)
	}
	if r.PassedOn {
		return nil, fmt.Errorf("this is member %d, not %d", c.Directory.ID, r.ID)
	}
	return c.passOn(ctx, r.ID, r)
}

// remove removes a member. A leader that must remove itself first transfers the
// leadership; the new leader then removes it.
func (c *Control) remove(ctx context.Context, r Request) (reply any, err error) {
	if !r.Force {
		if err := c.checkRemove(ctx, r.ID); err != nil {
			return nil, err
		}
		r.Force = true // the new leader might have too few contacts to repeat the check
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

// contactPatience is the time within which a live member sends a message to its leader.
const contactPatience = 2 * time.Second

// checkRemove returns an error if the voters other than the member id have no live
// majority. Status still shows a member that has just died as reachable. Therefore,
// checkRemove counts only members from which a message arrives after the call, and waits
// for these messages. The pause excludes messages that were under way, and covers the age
// of the status.
func (c *Control) checkRemove(ctx context.Context, id uint64) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(2 * againPause):
	}
	asked, err := c.Member.Status()
	if err != nil {
		return err
	}
	for over := time.After(contactPatience); ; {
		now, err := c.Member.Status()
		if err != nil {
			return err
		}
		s := c.withReports(now)
		for i := range s.Members {
			if m := &s.Members[i]; m.ID != now.Self && now.Contacts[m.ID] <= asked.At {
				m.Reachable = false
			}
		}
		if err = s.CheckRemove(id); err == nil {
			return nil
		}
		select {
		case <-over:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(againPause):
		}
	}
}

// transferTries is the number of attempts to transfer the leadership to a member. A
// member that has just started declines the first attempts.
const transferTries = 4

// transfer transfers the leadership to another member.
func (c *Control) transfer(ctx context.Context, to uint64) (err error) {
	if to == c.Directory.ID && c.Member.Lead().Epoch != 0 {
		return nil // this member already leads
	}
	for range transferTries {
		if err = c.Member.Transfer(ctx, to); !errors.Is(err, cluster.ErrDeclined) {
			return err
		}
		lead, waitErr := c.leader(ctx) // this member might be elected again
		if waitErr != nil {
			return waitErr
		}
		if lead.Leader != c.Directory.ID {
			return err
		}
	}
	return err
}

// Transfer transfers the leadership to the member to. If to is 0, the voter with the
// longest log becomes the leader.
func (c *Control) Transfer(ctx context.Context, to uint64) error {
	_, err := c.perform(ctx, Request{Do: DoTransfer, ID: to})
	return err
}

// Status returns this member's view of the cluster.
func (c *Control) Status() (apitype.Cluster, error) {
	known, err := c.Member.Status()
	if err != nil {
		return apitype.Cluster{}, err
	}
	return c.withReports(known), nil
}

// withReports adds the reports of the members about themselves to a status.
func (c *Control) withReports(known cluster.Status) apitype.Cluster {
	s := known.Cluster
	s.Members = slices.Clone(s.Members)
	for i := range s.Members {
		m := &s.Members[i]
		if m.ID == known.Self || known.Leader == known.Self {
			m.MemberHealth, m.Differs = c.reports.of(m.ID, known.Self)
		}
	}
	return s
}
