package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
)

// At a member of a cluster that does not lead, requests about the queue are passed on to the leader, and its
// answers back. The member that has the client finds out who that is; the leader decides by that name, and
// writes the change to its log.

// The headers by which a member tells the leader whose request it is. They count only in requests that
// come from other members.
const (
	headerIdentity = "Beanpole-Identity" // the name; empty: nobody knows
	headerClient   = "Beanpole-Client"   // IP and port; empty: it came through a unix socket
	headerVia      = "Beanpole-Via"      // see WithVia
	headerAge      = "Beanpole-Age"      // see WithAge; ns
)

// passedHeaders are those of clients that mean something to the API, but for who they are.
var passedHeaders = []string{"Accept", "Content-Type", "If-None-Match"}

// A member is what is known of a request that came from another member.
type member struct {
	identity string
	client   netip.Addr
}

type memberKey struct{}

// FromMembers serves requests that other members pass on to this one: only where nobody else can connect.
func (a *API) FromMembers() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := r.Header
		r.RemoteAddr = h.Get(headerClient)
		ctx := context.WithValue(r.Context(), memberKey{}, member{h.Get(headerIdentity), addressOf(r)})
		if via := h.Get(headerVia); via != "" {
			ctx = WithVia(ctx, via)
		}
		if age, err := strconv.ParseInt(h.Get(headerAge), 10, 64); err == nil {
			ctx = WithAge(ctx, time.Duration(age))
		}
		a.ServeHTTP(w, r.WithContext(ctx))
	})
}

// identify finds out who sends a request.
func (r *request) identify() (id *access.Identity, known bool) {
	m, passedOn := r.http.Context().Value(memberKey{}).(member)
	if !passedOn {
		return r.api.opt.Identify(r.http)
	}
	return r.api.opt.IdentifyByName(m.identity, m.client)
}

// elsewhere answers a request that is not to be answered here; ok is false if it is. What only reads is answered
// here if nobody leads, or the leader cannot be reached, unless only a part of the queue is here.
func (r *request) elsewhere() (rep reply, ok bool, err error) {
	if r.other != nil || r.op.isLocal() || r.api.opt.Leader == nil {
		return rep, false, nil
	}
	leader, err := r.api.opt.Leader()
	_, passedOn := r.http.Context().Value(memberKey{}).(member)
	switch {
	case err == nil && leader == nil:
		return rep, false, nil
	case passedOn: // once is enough
		return rep, true, problemf(http.StatusServiceUnavailable, "the leader of the cluster has changed: try again")
	case err == nil:
		if Wait(r.http.Context(), func() { rep, err = r.passOn(leader) }); err == nil {
			return rep, true, nil
		}
	}
	switch {
	case r.op.changes():
		return rep, true, problemf(http.StatusServiceUnavailable, "%v", err)
	case r.api.opt.Partial != nil && r.api.opt.Partial():
		return rep, true, problemf(http.StatusServiceUnavailable, "this member of the cluster is receiving the queue, and cannot ask the leader: try again, or ask another member")
	}
	return rep, false, nil
}

type waitKey struct{}

// WithWait returns a context for the requests of somebody who holds what others need. idle is given what waits for another server,
// and has to call it: so that can be let go meanwhile.
func WithWait(ctx context.Context, idle func(wait func())) context.Context {
	return context.WithValue(ctx, waitKey{}, idle)
}

// Wait calls what waits for another server, by way of what WithWait was given, if it was.
func Wait(ctx context.Context, wait func()) {
	if idle, ok := ctx.Value(waitKey{}).(func(wait func())); ok {
		idle(wait)
		return
	}
	wait()
}

// ErrNotSent is wrapped by the errors of Options.Leader's RoundTripper if the leader has heard nothing of the request.
var ErrNotSent = errors.New("it cannot be reached")

// passOn sends a request to the leader. An error says that there is no answer.
func (r *request) passOn(leader http.RoundTripper) (rep reply, err error) {
	h := r.http
	to, err := http.NewRequestWithContext(h.Context(), h.Method, "http://leader"+h.URL.RequestURI(), h.Body)
	if err != nil {
		return rep, err
	}
	switch to.ContentLength = h.ContentLength; {
	case r.op.brings == aLotOfJobs:
		to.ContentLength = -1 // the console does not know it
	case h.ContentLength == 0:
		to.Body = http.NoBody
	}
	for _, name := range passedHeaders {
		to.Header[name] = h.Header[name]
	}
	to.Header.Set(headerIdentity, r.who.Name())
	to.Header.Set(headerClient, h.RemoteAddr)
	if via, ok := h.Context().Value(viaKey{}).(string); ok {
		to.Header.Set(headerVia, via)
	}
	if age, ok := h.Context().Value(ageKey{}).(time.Duration); ok {
		to.Header.Set(headerAge, strconv.FormatInt(int64(age), 10))
	}
	answer, err := leader.RoundTrip(to)
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return reply{stream: func(w http.ResponseWriter) { writeProblem(w, decodeProblem(tooLarge)) }}, nil
	}
	if errors.Is(err, ErrNotSent) {
		return rep, fmt.Errorf("the leader of the cluster has not been asked: %w", err)
	}
	if err != nil {
		return rep, fmt.Errorf("the leader of the cluster has not answered; what was asked for may have happened (%w)", err)
	}
	return relayed(answer)
}

// relayed returns an answer of the leader as this server's. JSON is read whole before, so that a connection that
// ends cannot leave a part of it.
func relayed(answer *http.Response) (rep reply, err error) {
	var body io.Reader = answer.Body
	switch kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); kind {
	case "application/json", "application/problem+json", "":
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			return rep, fmt.Errorf("the leader of the cluster has not answered as a whole; what was asked for may have happened (%w)", err)
		}
		body = bytes.NewReader(text)
	}
	return reply{stream: func(w http.ResponseWriter) {
		defer answer.Body.Close()
		for name, values := range answer.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.StatusCode)
		if _, err := io.Copy(w, body); err != nil {
			panic(http.ErrAbortHandler) // so that the client sees that it is not whole
		}
	}}, nil
}
