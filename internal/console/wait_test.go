package console

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api"
)

// A slowLeader does not reply until it is released. Then it is unreachable.
type slowLeader struct{ asked, let chan struct{} } // asked has a buffer of one

func (l slowLeader) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == api.Prefix+"/tubes" {
		select {
		case l.asked <- struct{}{}:
		default:
		}
		<-l.let
	}
	return nil, errors.New("no route to host")
}

// While one page waits for the leader of the cluster, other pages are served.
func TestSlowLeader(t *testing.T) {
	slow := slowLeader{make(chan struct{}, 1), make(chan struct{})}
	r := startWith(t, nil, Options{}, func(*api.API) []Server { return nil }, func(o *api.Options) {
		o.Leader = func() (http.RoundTripper, error) { return slow, nil }
	})
	values := func(path string, made *atomic.Bool) {
		if _, err := r.live.values(r.viewOf("/console/" + path)); err != nil {
			t.Error(err)
		}
		made.Store(true)
	}
	var first, second atomic.Bool
	go values("tubes", &first)
	<-slow.asked
	go values("server", &second)
	until(t, func() bool { return second.Load() })
	if first.Load() {
		t.Error("the first page did not wait")
	}
	close(slow.let)
	until(t, func() bool { return first.Load() })
}

// Viewers of the same page share it, even if all start at the same time.
func TestViewersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the clock stands still, so pages do not become stale
		const viewers = 12
		r := start(t, nil, Options{})
		var looked, made atomic.Int32
		let := make(chan struct{})
		identify := r.Console.opt.Identify
		r.Console.opt.Identify = func(h *http.Request) (*access.Identity, bool) {
			looked.Add(1)
			return identify(h)
		}
		var all sync.WaitGroup
		for range viewers {
			asked, makePage := r.viewOf("/console/server")
			asked.who, _ = identify(asked.Request)
			all.Go(func() {
				_, err := r.live.latest(asked, func(r *request) (*page, error) {
					made.Add(1)
					<-let
					return makePage(r)
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		until(t, func() bool { return looked.Load() > viewers }) // all viewers, and the goroutine that renders the page again
		close(let)
		all.Wait()
		if n := made.Load(); n != 1 {
			t.Errorf("it was made %d times", n)
		}
	})
}
