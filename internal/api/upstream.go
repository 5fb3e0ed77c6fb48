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

// NewRemote returns the server whose admin listener has the given URL. token returns the
// token for a request; if it is nil, requests have no token. check configures TLS; if it
// is nil, the system's defaults apply. NewRemote does not connect.
func NewRemote(url string, token func() (string, error), check *tls.Config) *admin.HTTP {
	return &admin.HTTP{URL: url, Token: token, Client: http.Client{
		Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSHandshakeTimeout: dialTimeout, TLSClientConfig: check,
			ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute,
		},
		// Only the configuration determines the server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// An upstream is another server with its settings and state.
type upstream struct {
	admin.Transport
	name     string
	readOnly bool

	mu    sync.Mutex
	until time.Time // no requests are sent before this time
	why   error
}

// AddServer lets Open connect to another server by name. No path of the API leads there.
//
// To that server, all requests come from one client. A client of this server therefore
// needs stats and peek on every tube of this server to read, and all rights on every tube
// to change something. This server logs the changes and lists them.
func (a *API) AddServer(name string, readOnly bool, server admin.Transport) {
	a.upstreams[name] = &upstream{name: name, readOnly: readOnly, Transport: server}
}

// permitted checks the rights on this server: to see all tubes, or to change all if the
// operation changes something.
func (u *upstream) permitted(r *request) error {
	need := (r.op.Needs.Rights | rights.Stats | rights.Peek).On(rights.EveryTube)
	if r.op.changes() {
		need = rights.All.On(rights.EveryTube)
		if u.readOnly {
			return problemf(http.StatusForbidden, "the server %s is read-only here, by the configuration", u.name)
		}
	}
	return r.permittedOn(need, "every tube of this server, because it concerns another server")
}

const (
	// upstreamTimeout limits the time until another server answers. It does not apply to
	// streams.
	upstreamTimeout = 5 * time.Second
	// dialTimeout limits the time to connect.
	dialTimeout = 2 * time.Second
	// downFor is the time that a server is not asked again after it did not answer.
	// Otherwise each part of a page would wait for it.
	downFor = 3 * time.Second
)

var errSlow = fmt.Errorf("no answer within %v", upstreamTimeout)

// do sends the operation to the other server, unless that server has just failed.
func (u *upstream) do(r *request, in any) (out any, err error) {
	if err := u.downErr(); err != nil {
		return nil, err
	}
	ctx, cancel := r.ctx, context.CancelFunc(func() {})
	if wait, ok := r.op.limited(in); ok {
		ctx, cancel = context.WithTimeoutCause(ctx, upstreamTimeout+wait, errSlow)
	}
	defer cancel()
	out, err = r.ask(ctx, u, in)
	failed, isURL := errors.AsType[*url.Error](err)
	switch {
	case err == nil:
	case errors.Is(context.Cause(ctx), errSlow):
		return nil, u.markDown(errSlow)
	case r.ctx.Err() != nil && admin.StatusOf(err) == 0:
		return nil, errGone
	case admin.StatusOf(err) == http.StatusUnauthorized: // the other server refuses our token; this does not concern the client here
		return nil, u.markDown(errors.New("it refuses the token of token-file in the configuration"))
	case isURL:
		return nil, u.markDown(failed.Err) // without the URL
	case admin.StatusOf(err) == 0:
		return nil, u.markDown(err)
	}
	if me, ok := out.(admin.Me); ok {
		out = u.restrict(me, r)
	}
	return out, err
}

// ask performs the operation over a transport.
func (r *request) ask(ctx context.Context, to admin.Transport, in any) (any, error) {
	room := reflect.New(r.op.out)
	err := to.Do(ctx, r.op.Route, in, room.Interface())
	return room.Elem().Interface(), err
}

// downErr returns a problem if the server has just failed to answer.
func (u *upstream) downErr() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if time.Now().Before(u.until) {
		return u.why
	}
	return nil
}

// markDown records that the server did not answer.
func (u *upstream) markDown(why error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.until = time.Now().Add(downFor)
	u.why = problemf(http.StatusBadGateway, "the server %s does not answer: %v", u.name, why).After(downFor)
	return u.why
}

// restrict removes the rights that the client cannot use on the other server.
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
