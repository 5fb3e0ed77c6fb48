package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/internal/cluster"
	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/cluster/transport"
)

// What can be asked for.
const (
	DoStatus   = "status"   // the answer is a Status
	DoAdd      = "add"      // a member: ID, Address; InPlaceOf if not 0. The answer is a cluster.Group
	DoRemove   = "remove"   // the member ID
	DoTransfer = "transfer" // the leadership to the member ID; 0: whoever is best
)

// A Request is what is asked for.
type Request struct {
	Do        string `json:"do"`
	ID        uint64 `json:"id,omitempty"`
	Address   string `json:"address,omitempty"`
	InPlaceOf uint64 `json:"in_place_of,omitempty"`
	PassedOn  bool   `json:"passed_on,omitempty"` // by a member that does not lead
}

// A Status is what one member knows of the cluster.
type Status struct {
	Members []MemberStatus `json:"members"`
	Leader  uint64         `json:"leader"` // 0: nobody
	Term    uint64         `json:"term"`
	Quorum  bool           `json:"quorum"` // a majority is heard
}

// A MemberStatus is what is known of a member.
type MemberStatus struct {
	ID        uint64       `json:"id"`
	Address   string       `json:"address"`
	Role      cluster.Role `json:"role"`
	Reachable bool         `json:"reachable"`
	Applied   uint64       `json:"applied"` // the last entry that it has, of those that are committed
	Lag       uint64       `json:"lag"`     // committed entries that it does not have
	Version   string       `json:"version"` // "": not known
}

// A Member is what is asked of a [cluster.Member].
type Member interface {
	Status() (cluster.Status, error)
	Lead() cluster.Leadership
	Watch() <-chan struct{}
	Group() cluster.Group
	Add(ctx context.Context, added raftlog.Member) error
	Replace(ctx context.Context, old uint64, added raftlog.Member) error
	Remove(ctx context.Context, id uint64) error
	Transfer(ctx context.Context, to uint64) error
}

// A Transport passes requests on; see [transport.Transport].
type Transport interface {
	Request(ctx context.Context, id uint64, body []byte) ([]byte, error)
}

// A Control answers what is asked of a member. Its fields are static.
type Control struct {
	Member    Member
	Directory *directory.Directory
	Transport Transport
}

// Request answers another member, or a command.
func (c *Control) Request(ctx context.Context, from uint64, body []byte) ([]byte, error) {
	var r Request
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("not a request: %w", err)
	}
	reply, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	return json.Marshal(reply)
}

func (c *Control) do(ctx context.Context, r Request) (reply any, err error) {
	if r.Do == DoStatus {
		return c.status(ctx, r)
	}
	for {
		reply, err := c.try(ctx, r)
		if !errors.Is(err, errAgain) {
			return reply, err
		}
		select {
		case <-time.After(againPause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// errAgain is wrapped by errors that pass: another change is under way, which may be that a member that has caught up
// votes; or the leader does not answer, in whose place there will be another one.
var errAgain = errors.New("nothing was changed; try again")

// againPause is how long a change waits before it is tried again.
const againPause = 100 * time.Millisecond

// try asks the leader, or changes something if this member leads.
func (c *Control) try(ctx context.Context, r Request) (reply any, err error) {
	lead, err := c.leader(ctx)
	if err != nil {
		return nil, err
	}
	if lead.Leader == c.Directory.ID || r.PassedOn {
		reply, err = c.change(ctx, r)
		if errors.Is(err, cluster.ErrBusy) {
			err = fmt.Errorf("%w: %w", errAgain, err)
		}
		return reply, err
	}
	reply, err = c.passOn(ctx, lead.Leader, r)
	if _, refused := errors.AsType[transport.Refusal](err); err != nil && !refused {
		err = fmt.Errorf("%w: %w", errAgain, err)
	}
	return reply, err
}

// status answers with what the leader knows or, if that does not answer, this member.
func (c *Control) status(ctx context.Context, r Request) (reply any, err error) {
	if lead := c.Member.Lead().Leader; lead != 0 && lead != c.Directory.ID && !r.PassedOn {
		if reply, err := c.passOn(ctx, lead, r); err == nil {
			return reply, nil
		}
	}
	return c.Status()
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

// leader waits until there is a leader, and that is in office if it is this member.
func (c *Control) leader(ctx context.Context) (cluster.Leadership, error) {
	ctx, cancel := context.WithTimeout(ctx, leaderPatience)
	defer cancel()
	for {
		changed := c.Member.Watch()
		lead := c.Member.Lead()
		if lead.Office != 0 || lead.Leader != 0 && lead.Leader != c.Directory.ID {
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

// remove removes a member. A leader that is to be removed lets another one lead before.
func (c *Control) remove(ctx context.Context, r Request) (reply any, err error) {
	if r.ID != c.Directory.ID || len(c.Member.Group().Members) == 1 {
		return struct{}{}, c.Member.Remove(ctx, r.ID)
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

// transferTries is how often a member is asked to take over: one that was just started declines.
const transferTries = 4

// transfer lets another member lead.
func (c *Control) transfer(ctx context.Context, to uint64) (err error) {
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

// Status returns what this member knows.
func (c *Control) Status() (Status, error) {
	known, err := c.Member.Status()
	if err != nil {
		return Status{}, err
	}
	s := Status{Leader: known.Leader, Term: known.Term, Quorum: known.Quorum, Members: []MemberStatus{}}
	for _, m := range known.Members {
		s.Members = append(s.Members, MemberStatus{
			ID: m.ID, Address: m.Address, Role: m.Role, Reachable: m.Reachable, Applied: m.Applied, Lag: m.Lag, Version: m.Version,
		})
	}
	return s, nil
}

// add adds a member, and returns when it is a learner.
func (c *Control) add(ctx context.Context, r Request) (cluster.Group, error) {
	added := raftlog.Member{ID: r.ID, Address: r.Address}
	if r.InPlaceOf == 0 {
		err := c.Member.Add(ctx, added)
		return c.Member.Group(), err
	}
	replaced := make(chan error, 1)
	go func() { // #nosec G118 -- it goes on until the new member, which is to start after the answer, has caught up
		ctx, cancel := context.WithTimeout(context.Background(), replaceTimeout)
		defer cancel()
		replaced <- c.Member.Replace(ctx, r.InPlaceOf, added)
	}()
	for {
		changed := c.Member.Watch()
		g := c.Member.Group()
		if slices.ContainsFunc(g.Members, func(m raftlog.Member) bool { return m.ID == r.ID }) {
			return g, nil
		}
		select {
		case <-changed:
		case err := <-replaced:
			return c.Member.Group(), err
		case <-ctx.Done():
			return g, ctx.Err()
		}
	}
}

// replaceTimeout is how long a new member may take to catch up before somebody has to remove the one that it
// replaces.
const replaceTimeout = 24 * time.Hour

// A joinRequest is what somebody asks who has a token.
type joinRequest struct {
	Secret    string `json:"secret"`
	Listen    string `json:"listen"`
	InPlaceOf uint64 `json:"in_place_of,omitempty"`
}

// A Joined is what a new member gets.
type Joined struct {
	Cluster string           `json:"cluster"`
	ID      uint64           `json:"id"`
	Bundle  directory.Bundle `json:"bundle"`
	Group   cluster.Group    `json:"group"`
}

// Join answers somebody who has a token.
func (c *Control) Join(ctx context.Context, _ net.Addr, body []byte) ([]byte, error) {
	var r joinRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("not a request: %w", err)
	}
	if err := directory.CheckAddress(r.Listen); err != nil {
		return nil, err
	}
	if _, err := c.leader(ctx); err != nil {
		return nil, err
	}
	if err := c.Directory.Redeem(r.Secret, time.Now()); err != nil {
		return nil, err
	}
	j := Joined{Cluster: c.Directory.Cluster, ID: directory.NewID()}
	credentials, err := c.Directory.Credentials.Issue(j.ID)
	if err != nil {
		return nil, err
	}
	if j.Bundle, err = credentials.Bundle(); err != nil {
		return nil, err
	}
	reply, err := c.do(ctx, Request{Do: DoAdd, ID: j.ID, Address: r.Listen, InPlaceOf: r.InPlaceOf})
	if err != nil {
		return nil, fmt.Errorf("%w (the token is used up; make another)", err)
	}
	switch g := reply.(type) {
	case cluster.Group:
		j.Group = g
	case json.RawMessage:
		if err := json.Unmarshal(g, &j.Group); err != nil {
			return nil, fmt.Errorf("the leader's answer: %w", err)
		}
	}
	return json.Marshal(j)
}
