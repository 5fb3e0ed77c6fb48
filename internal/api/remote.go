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
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// RemoteOptions say where another beanpole's admin pages are.
type RemoteOptions struct {
	URL   string                 // with the scheme and the host only
	Token func() (string, error) // returns the token of a request. Nil: none is sent
	TLS   *tls.Config            // nil: as the system has it
}

// remote is another beanpole, by its API.
type remote struct{ admin.HTTP }

// NewRemote returns another beanpole. Nothing is connected yet.
func NewRemote(opt RemoteOptions) Other {
	return &remote{admin.HTTP{URL: opt.URL, Token: opt.Token, Client: http.Client{
		Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: dialPatience}).DialContext, TLSHandshakeTimeout: dialPatience, TLSClientConfig: opt.TLS,
			ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute,
		},
		// Where it is, the configuration says, and nobody else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}}
}

func (s *remote) close() { s.Client.CloseIdleConnections() }

var errSlow = fmt.Errorf("there is no answer within %v", otherPatience)

// do implements Other.
func (s *remote) do(r *request, in any) (any, error) {
	ctx, cancel := r.ctx, context.CancelFunc(func() {})
	if !r.op.lasts() {
		ctx, cancel = context.WithTimeoutCause(ctx, otherPatience, errSlow)
	}
	defer cancel()
	out := reflect.New(r.op.out)
	err := s.Do(ctx, r.op.Route, in, out.Interface())
	failed, isURL := errors.AsType[*url.Error](err)
	switch {
	case err == nil:
	case errors.Is(context.Cause(ctx), errSlow):
		return nil, errSlow
	case admin.StatusOf(err) == http.StatusUnauthorized: // it is we who are not known there, and not the client here
		return nil, errors.New("it wants a token that it knows: token-file of the configuration names the file that has it")
	case isURL:
		return nil, failed.Err // without the URL
	}
	return out.Elem().Interface(), err
}
