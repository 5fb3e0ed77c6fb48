package api

import (
	"context"
	"net/http"
	"reflect"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// A typedSource is an input that this program has created as a Go value.
type typedSource struct {
	given any // nil if there is no input
	plan  *op.Plan
}

func (s *typedSource) path(in any) error {
	if s.given != nil {
		set(in, s.given)
	}
	return nil
}

func (s *typedSource) query(in any) error { return s.plan.Fill(in) }

func (s *typedSource) body(any) error { return nil } // the body is part of given

// Open returns a client within the process that acts for caller. server is the name of
// another server; the empty name means this server.
func (a *API) Open(caller access.Caller, server string) *admin.Client {
	return admin.On(&local{a, caller, server})
}

// A local is a transport within the process. Results are not copied, so they can be
// shared and must not be changed.
type local struct {
	api    *API
	caller access.Caller
	server string
}

// Do implements admin.Transport.
func (l *local) Do(ctx context.Context, route string, in, out any) error {
	o := byRoute()[route]
	r := &request{api: l.api, op: o, ctx: ctx, caller: l.caller, source: &typedSource{in, o.plan}}
	if l.server != "" {
		if r.upstream = l.api.upstreams[l.server]; r.upstream == nil {
			return problemf(http.StatusNotFound, "unknown server; the configuration lists all")
		}
	}
	got, err := r.run()
	if err == nil && out != nil {
		set(out, got)
	}
	return err
}

// set stores from in *to. If from is a pointer to that type, it stores the value that
// from points to.
func set(to, from any) {
	t, f := reflect.ValueOf(to).Elem(), reflect.ValueOf(from)
	if f.Type() != t.Type() {
		f = f.Elem()
	}
	t.Set(f)
}
