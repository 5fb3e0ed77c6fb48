package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/rights"
)

// An Upstream is another beanpole that performs operations of the API. Errors without a
// status report that it cannot be reached.
type Upstream interface {
	admin.Transport
	Close()
}

// Remote is another beanpole.
type Remote struct{ admin.HTTP }

// NewRemote returns another beanpole, by the scheme and the host of its admin pages, what returns the token of a request (nil: none is
// sent), and how TLS is checked (nil: as the system has it). Nothing is connected yet.
func NewRemote(url string, token func() (string, error), check *tls.Config) *Remote {
	return &Remote{admin.HTTP{URL: url, Token: token, Client: http.Client{
		Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSHandshakeTimeout: dialTimeout, TLSClientConfig: check,
			ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute,
		},
		// Where it is, the configuration says, and nobody else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}}
}

// Close ends the connections that nobody uses.
func (s *Remote) Close() { s.Client.CloseIdleConnections() }

// upstream is another server with what holds for it here.
type upstream struct {
	Upstream
	name     string
	readOnly bool

	mu    sync.Mutex
	until time.Time // nobody is sent there before
	why   error
}

// AddServer lets Open lead to another server, by a name that is for people. The API has no path that leads there. Close closes it.
//
// That server sees one client, whoever asks. So it is for those only who may do as much here: to look at it needs stats
// and peek on every tube of this server, to change something all rights. Changes have a line in the log and in the list of
// changes of this server.
func (a *API) AddServer(name string, readOnly bool, server Upstream) {
	a.upstreams[name] = &upstream{name: name, readOnly: readOnly, Upstream: server}
}

// permitted asks for the rights here: to see all, and more if the operation changes something.
func (u *upstream) permitted(r *request) error {
	need := (r.op.Needs.Rights | rights.Stats | rights.Peek).On(rights.EveryTube)
	if r.op.changes() {
		need = rights.All.On(rights.EveryTube)
		if u.readOnly {
			return problemf(http.StatusForbidden, "the server %s can only be looked at here: the configuration has read-only for it", u.name)
		}
	}
	return r.permittedOn(need, "every tube of this server, for it is about another one")
}

const (
	// upstreamTimeout is how long another server may take to answer, but for what takes as long as there are jobs.
	upstreamTimeout = 5 * time.Second
	// dialTimeout is how long it may take to connect to it.
	dialTimeout = 2 * time.Second
	// awayFor is for how long a server that did not answer is not asked again: the parts of a page shall not wait one after the other.
	awayFor = 3 * time.Second
)

var errSlow = fmt.Errorf("there is no answer within %v", upstreamTimeout)

// do lets the other server answer, unless it was away just now.
func (u *upstream) do(r *request, in any) (out any, err error) {
	if err := u.away(); err != nil {
		return nil, err
	}
	ctx, cancel := r.ctx, context.CancelFunc(func() {})
	if wait, ok := r.op.limited(in); ok {
		ctx, cancel = context.WithTimeoutCause(ctx, upstreamTimeout+wait, errSlow)
	}
	defer cancel()
	out, err = r.ask(ctx, u, in, reflect.New(r.op.out))
	failed, isURL := errors.AsType[*url.Error](err)
	switch {
	case err == nil:
	case errors.Is(context.Cause(ctx), errSlow):
		return nil, u.gone(errSlow)
	case r.ctx.Err() != nil && admin.StatusOf(err) == 0:
		return nil, errGone
	case admin.StatusOf(err) == http.StatusUnauthorized: // it is we who are not known there, and not the client here
		return nil, u.gone(errors.New("it wants a token that it knows: token-file of the configuration names the file that has it"))
	case isURL:
		return nil, u.gone(failed.Err) // without the URL
	case admin.StatusOf(err) == 0:
		return nil, u.gone(err)
	}
	if me, ok := out.(admin.Me); ok {
		out = u.restrict(me, r)
	}
	return out, err
}

// ask lets a transport do the operation, and returns the answer, for which there is room. It is the only way to elsewhere.
func (r *request) ask(ctx context.Context, to admin.Transport, in any, room reflect.Value) (any, error) {
	err := to.Do(ctx, r.op.Route, in, room.Interface())
	return room.Elem().Interface(), err
}

// away returns a problem if the server did not answer just now.
func (u *upstream) away() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if time.Now().Before(u.until) {
		return u.why
	}
	return nil
}

// gone notes that the server did not answer.
func (u *upstream) gone(why error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.until = time.Now().Add(awayFor)
	u.why = problemf(http.StatusBadGateway, "the server %s does not answer: %v", u.name, why).After(awayFor)
	return u.why
}

// restrict takes the rights away that the client cannot use there.
func (u *upstream) restrict(me admin.Me, r *request) admin.Me {
	me.Identity = r.caller.Identity.Name()
	if !u.readOnly && r.caller.Identity.Meets(rights.All.On(rights.EveryTube)) {
		return me
	}
	for _, names := range []*[]string{&me.Anywhere, &me.Everywhere, &me.Tube} {
		*names = slices.DeleteFunc(*names, func(name string) bool { return name != rights.Stats.String() && name != rights.Peek.String() })
	}
	return me
}
