package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
)

const (
	maxStreams = 24 // other browsers poll every few seconds
	liveStep   = time.Second
	writeTime  = 10 * time.Second // time limit for writing an event
)

// A publisher sends live values of pages to viewers. Each stream renders its page once a
// second. Streams of the same page for the same identity share the result.
type publisher struct {
	console *Console
	open    context.Context
	close   context.CancelFunc // ends all streams
	making  sync.Mutex
	shared  ttlCache[view, *liveValues]
	streams chan struct{} // an element for each stream
}

// A view is a page as seen by one identity.
type view struct {
	who  *access.Identity
	page string
}

func newPublisher(c *Console) *publisher {
	p := &publisher{console: c, streams: make(chan struct{}, maxStreams), shared: ttlCache[view, *liveValues]{forgets: true, made: make(map[view]dated[*liveValues])}}
	p.open, p.close = context.WithCancel(context.Background())
	return p
}

// latest returns the values of a page, which are at most as old as its lists. It returns
// an error if the identity of the viewer has changed; the browser then reconnects.
func (p *publisher) latest(r *request, page pageFunc) (v *liveValues, err error) {
	if who, known := p.console.opt.Identify(r.Request); !known || who != r.who {
		return nil, errUnknown
	}
	v, younger := p.shared.of(view{r.who, r.URL.RequestURI()}, func() (made *liveValues, err error) {
		panicked := p.console.recoverToError(func() error { made, err = p.values(r.detached(), page); return nil })
		return made, cmp.Or(panicked, err)
	})
	if younger == nil {
		return v, nil
	}
	select {
	case one := <-younger:
		v, _ = one.Val.(*liveValues)
		return v, one.Err
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// values returns the values of a page that can change. Pages are rendered one at a time:
// rendered concurrently, they could take all processors from the queue's clients. No
// request to a server runs during that.
func (p *publisher) values(r *request, makePage pageFunc) (*liveValues, error) {
	made, err := r.page(makePage)
	if err != nil {
		return nil, err
	}
	made.values = &liveValues{Texts: make(map[string]value), Lines: make(map[string]string)}
	made.fill(r)
	p.making.Lock()
	defer p.making.Unlock()
	if err := templates[made.template]().Execute(io.Discard, made); err != nil {
		return nil, err
	}
	made.values.Shape = made.Shape()
	return made.values, nil
}

// without returns the values that differ from earlier values, as JSON.
func (v *liveValues) without(before *liveValues) []byte {
	other := &liveValues{Texts: changed(v.Texts, before.Texts), Lines: changed(v.Lines, before.Lines)}
	if v.Shape != before.Shape {
		other.Shape = v.Shape
	}
	text, err := json.Marshal(other)
	if err != nil {
		panic(err) // maps of strings cannot fail
	}
	return text
}

// changed returns the values that differ from earlier values.
func changed[V comparable](now, before map[string]V) map[string]V {
	some := make(map[string]V)
	for id, v := range now {
		if old, ok := before[id]; !ok || old != v {
			some[id] = v
		}
	}
	return some
}

// A livePage serves a page, and its stream to a client that asks for events.
type livePage struct {
	console *Console
	make    pageFunc
}

const eventStream = "text/event-stream"

// ServeHTTP implements http.Handler.
func (p livePage) ServeHTTP(w http.ResponseWriter, h *http.Request) {
	if h.Header.Get("Accept") != eventStream {
		p.console.show(p.make)(w, h)
		return
	}
	h.Pattern += ", stream" // for the metrics: a stream lasts as long as its page is open
	r := p.console.newRequest(h)
	r.live = true
	if _, err := r.page(func(*request) (*page, error) { return nil, nil }); err != nil {
		http.Error(w, "log in first", http.StatusUnauthorized)
		return
	}
	live := p.console.live
	select {
	case live.streams <- struct{}{}:
		defer func() { <-live.streams }()
	default:
		w.Header().Set("Retry-After", "30")
		http.Error(w, "too many streams; reload the page instead", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", eventStream)
	w.Header().Set("X-Accel-Buffering", "no") // for nginx
	live.stream(w, r, p.make)
}

// stream writes the values of a page, and then their changes. It ends when the viewer
// disconnects, the server stops, or the page fails.
func (p *publisher) stream(w http.ResponseWriter, r *request, page pageFunc) {
	out := http.NewResponseController(w)
	write := func(text []byte) bool {
		out.SetWriteDeadline(time.Now().Add(writeTime))
		out.SetReadDeadline(time.Time{}) // the deadline of the request has passed
		_, err := w.Write(text)
		return err == nil && out.Flush() == nil
	}
	tick := time.NewTicker(liveStep)
	defer tick.Stop()
	before := new(liveValues)
	for open := write([]byte("retry: 2000\n\n")); open; {
		now, err := p.latest(r, page)
		if err != nil || !write(fmt.Appendf(nil, "data: %s\n\n", now.without(before))) {
			return
		}
		before = now
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-p.open.Done():
			return
		}
	}
}
