package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
)

// A member of a cluster that is not the leader forwards requests about the queue to the
// leader, and returns the answers. The member to which the client is connected identifies
// the client. The leader checks the rights of that identity and logs the change.

// Headers that identify the client of a forwarded request. They are used only in requests
// from other members.
const (
	headerIdentity = "Beanpole-Identity" // name; empty if unknown
	headerClient   = "Beanpole-Client"   // IP and port; empty for a Unix socket
	headerVia      = "Beanpole-Via"
	headerAge      = "Beanpole-Age" // ns
)

type memberKey struct{}

// FromMembers returns a handler of requests that other members forward. Only members must
// be able to connect to it.
func (a *API) FromMembers() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == historyPath {
			a.sendHistory(w, r)
			return
		}
		h := r.Header
		r.RemoteAddr = h.Get(headerClient)
		age, _ := strconv.ParseInt(h.Get(headerAge), 10, 64)
		caller := &access.Caller{Address: r.RemoteAddr, Via: h.Get(headerVia), MaxAge: time.Duration(age)}
		a.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), memberKey{}, caller)))
	})
}

// relay answers a request that this server must not serve itself; otherwise, done is
// false. If no leader is reachable, this server serves reads, unless it has only part of
// the queue.
func (r *request) relay(in any) (out any, done bool, err error) {
	if r.upstream != nil || r.op.Local {
		return nil, false, nil
	}
	leader, err := r.api.leader()
	if err != nil && r.op.changes() {
		leader, err = r.awaitLeader(err)
	}
	switch {
	case err == nil && leader == nil:
		return nil, false, nil
	case r.fromMember: // a request is forwarded only once
		return nil, true, problemf(http.StatusServiceUnavailable, "the leader of the cluster has changed: try again")
	case err == nil:
		if err = r.source.path(in); err == nil {
			err = r.source.query(in)
		}
		if err == nil {
			err = r.source.body(in)
		}
		if err != nil {
			return nil, true, err
		}
		if out, err = r.passOn(leader, in); err == nil || admin.StatusOf(err) != 0 {
			return out, true, err
		}
	}
	switch {
	case r.op.changes():
		return nil, true, problemf(http.StatusServiceUnavailable, "%v", err)
	case r.api.opt.Installing != nil && r.api.opt.Installing():
		return nil, true, problemf(http.StatusServiceUnavailable, "this member is receiving the queue and cannot reach the leader: try again, or use another member")
	}
	return nil, false, nil
}

// A change during an election waits for the next leader.
const (
	leaderPatience = 10 * time.Second
	leaderPause    = 50 * time.Millisecond
)

// awaitLeader waits for a leader of the cluster. It returns err if no leader is elected
// in time.
func (r *request) awaitLeader(err error) (http.RoundTripper, error) {
	ctx, cancel := context.WithTimeout(r.ctx, leaderPatience)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(leaderPause):
		}
		if leader, failed := r.api.leader(); failed == nil {
			return leader, nil
		}
	}
}

// ErrNotSent is wrapped by errors of the RoundTripper of Options.Leader if the request
// has not reached the leader.
var ErrNotSent = errors.New("it cannot be reached")

// passOn sends the request to the leader. If there is no answer, the error is not a
// problem.
func (r *request) passOn(leader http.RoundTripper, in any) (any, error) {
	to := admin.HTTP{URL: "http://leader", Client: http.Client{Transport: leader}, Header: http.Header{
		headerIdentity: {r.caller.Identity.Name()}, headerClient: {r.caller.Address}, headerVia: {r.caller.Via}, headerAge: {strconv.FormatInt(int64(r.caller.MaxAge), 10)},
	}}
	out, err := r.ask(r.ctx, &to, in)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		if errors.Is(err, ErrNotSent) {
			return nil, fmt.Errorf("the request did not reach the leader of the cluster: %w", failed.Err)
		}
		return nil, fmt.Errorf("the leader of the cluster has not answered; it might have executed the request (%w)", failed.Err)
	}
	if err != nil && admin.StatusOf(err) == 0 {
		return nil, fmt.Errorf("the leader of the cluster sent an incomplete answer; it might have executed the request (%w)", err)
	}
	return out, err
}
