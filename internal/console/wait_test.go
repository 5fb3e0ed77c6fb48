package console

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api"
)

// A slowLeader answers nothing before it is let, and then that it cannot be reached.
type slowLeader struct{ asked, let chan struct{} } // asked has room for one

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

// While a page of the own server waits for the leader of the cluster, the others are made.
func TestSlowLeader(t *testing.T) {
	slow := slowLeader{make(chan struct{}, 1), make(chan struct{})}
	r := startWith(t, nil, Options{}, func(*api.API) []Server { return nil }, func(o *api.Options) {
		o.Leader = func() (http.RoundTripper, error) { return slow, nil }
	})
	values := func(path string, made *atomic.Bool) {
		asked, page, err := r.viewOf(httptest.NewRequest("GET", "/console/events?view=/console/"+path, nil))
		if err == nil {
			_, err = r.live.values(asked, page)
		}
		if err != nil {
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
		t.Error("the first page has not waited")
	}
	close(slow.let)
	until(t, func() bool { return first.Load() })
	if !r.live.making.TryLock() {
		t.Error("it is still held")
	}
}

// To wait for the other servers holds up no other page.
func TestSlowServer(t *testing.T) {
	let := make(chan struct{})
	slow := transport(func() { <-let })
	r := startWith(t, nil, Options{Open: slow.at("slow")}, func(*api.API) []Server { return []Server{{Name: "slow"}} })
	asked, _, err := r.viewOf(httptest.NewRequest("GET", "/console/events?view=/console/", nil))
	if err != nil {
		t.Fatal(err)
	}
	waits := 0
	asked.idle = func(wait func()) { waits++; wait() }
	if _, err := asked.page(overviewPage); err != nil {
		t.Error(err)
	}
	close(let)
	if waits != 1 {
		t.Errorf("it has waited %d times", waits)
	}
}

// Those who look at the same page share it, also when all begin at once.
func TestViewersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its clock stands still: what is made grows no older
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
			asked, makePage, err := r.viewOf(httptest.NewRequest("GET", "/console/events?view=/console/server", nil))
			if err != nil {
				t.Fatal(err)
			}
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
		until(t, func() bool { return looked.Load() > viewers }) // all, and who makes the page again
		close(let)
		all.Wait()
		if n := made.Load(); n != 1 {
			t.Errorf("it was made %d times", n)
		}
	})
}
