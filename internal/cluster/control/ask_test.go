package control

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"testing"

	"github.com/beanpole-mq/beanpole/internal/cluster"
	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
	"github.com/beanpole-mq/beanpole/internal/cluster/transport"
)

// If a member stops before it answers, it might have executed the request. The next
// member gets the request in a form that can be executed twice without harm.
func TestAskMemberThatStops(t *testing.T) {
	ca := directory.NewCA(directory.NewCluster(), 1)
	member := func(id uint64, answer func(context.Context, Request) error) (*transport.Transport, string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		tr := transport.New(transport.Options{
			Listener: l, Credentials: ca.Issue(id),
			Request: func(ctx context.Context, _ uint64, body []byte) ([]byte, error) {
				var r Request
				if err := json.Unmarshal(body, &r); err != nil {
					return nil, err
				}
				return []byte("{}"), answer(ctx, r)
			},
		})
		tr.Start(nil)
		t.Cleanup(tr.Close)
		return tr, l.Addr().String()
	}
	asked := make(chan Request, 1)
	stops, first := member(1, func(ctx context.Context, r Request) error {
		asked <- r
		<-ctx.Done()
		return ctx.Err()
	})
	_, second := member(2, func(_ context.Context, r Request) error {
		if !r.IfThere {
			return cluster.ErrNotMember
		}
		return nil
	})
	go func() {
		if r := <-asked; r.IfThere {
			t.Error("the first request has IfThere set")
		}
		stops.Close()
	}()
	d := &directory.Directory{Identity: directory.Identity{Listen: first, Contacts: []string{second}}, Credentials: ca.Issue(1)}
	if _, err := Ask[struct{}](t.Context(), d, Request{Do: DoRemove, ID: 1}); err != nil {
		t.Error(err)
	}
	if _, err := transport.Request(t.Context(), d.Credentials, second, 0, []byte(`{"do":"remove","id":1}`)); !errors.As(err, new(transport.RemoteError)) {
		t.Errorf("without the first member: %v", err)
	}
}
