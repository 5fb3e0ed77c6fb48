package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
)

const (
	maxStreams = 24 // of all who look; the others ask every few seconds
	ownStreams = 12 // of one who looks: more tabs than a browser has connections for
	liveStep   = time.Second
	heartbeat  = 15 * time.Second
	writeTime  = 10 * time.Second // for an event
)

// A publisher sends the live values of pages to those who look at them. It has a goroutine
// for each page that is looked at, which renders it once a second; viewers of the same page with the same identity share
// it. When the last viewer goes, the goroutine ends.
type publisher struct {
	console *Console
	done    chan struct{}
	once    sync.Once
	making  sync.Mutex

	mu      sync.Mutex
	views   map[string]*view
	streams int
	ofWhom  map[string]int // streams, by who has them and from where
}

// A view is a page that is looked at.
type view struct {
	key     string
	page    pageFunc
	who     *access.Identity // of all viewers
	viewers []*viewer        // guarded by publisher.mu
}

// A viewer is a stream.
type viewer struct {
	request *request
	events  chan []byte // closed when the stream is over
	fresh   bool        // it has not been told all values yet
}

func newPublisher(c *Console) *publisher {
	return &publisher{console: c, done: make(chan struct{}), views: make(map[string]*view), ofWhom: make(map[string]int)}
}

// close ends all streams.
func (p *publisher) close() { p.once.Do(func() { close(p.done) }) }

// join adds a viewer to the view of a page. It is false if there are too many streams.
func (p *publisher) join(r *request, page pageFunc) (v *viewer, leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	client, _, _ := net.SplitHostPort(r.RemoteAddr)
	whom := r.who.Name() + " " + client
	if p.streams == maxStreams || p.ofWhom[whom] == ownStreams {
		return nil, nil, false
	}
	p.streams++
	p.ofWhom[whom]++
	key := fmt.Sprintf("%p %s", r.who, r.URL.RequestURI())
	one := p.views[key]
	v = &viewer{request: r, events: make(chan []byte, 4), fresh: true}
	if one == nil {
		one = &view{key: key, page: page, who: r.who}
		p.views[key] = one
		one.viewers = append(one.viewers, v)
		go p.publish(one)
	} else {
		one.viewers = append(one.viewers, v)
	}
	return v, func() { p.leave(one, v, whom) }, true
}

func (p *publisher) leave(from *view, v *viewer, whom string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams--
	if p.ofWhom[whom]--; p.ofWhom[whom] == 0 {
		delete(p.ofWhom, whom)
	}
	from.drop(v)
}

// drop takes a viewer out of a view, if it is there.
func (v *view) drop(gone *viewer) {
	for i, one := range v.viewers {
		if one == gone {
			v.viewers = append(v.viewers[:i:i], v.viewers[i+1:]...)
			return
		}
	}
}

// first returns a viewer of a view, or nil if the view is over. It sends those away who are not known as the same any more: if they
// are known, their browsers come again.
func (p *publisher) first(v *view) *viewer {
	p.mu.Lock()
	defer p.mu.Unlock()
	v.viewers = slices.DeleteFunc(v.viewers, func(one *viewer) bool {
		who, known := p.console.opt.Identify(one.request.Request)
		if known && who == v.who {
			return false
		}
		close(one.events)
		return true
	})
	if len(v.viewers) == 0 {
		delete(p.views, v.key)
		return nil
	}
	return v.viewers[0]
}

// publish renders a page once a second as long as somebody looks at it.
func (p *publisher) publish(v *view) {
	tick := time.NewTicker(liveStep)
	defer tick.Stop()
	var before liveValues
	for {
		one := p.first(v)
		if one == nil {
			return
		}
		var now *liveValues
		err := p.console.survive(func() (err error) {
			now, err = p.values(one.request, v.page)
			return err
		})
		switch {
		case err == nil:
			p.send(v, now, now.without(&before))
			before = *now
		case one.request.Context().Err() == nil: // else the next viewer is asked
			p.end(v)
			return
		}
		select {
		case <-p.done:
			p.end(v)
			return
		case <-tick.C:
		}
	}
}

// values returns what may change of a page. Pages of the own server are made one after the other: were all made at once, they would
// take all processors, and the clients of the queue would wait. While one only waits, for the leader of the cluster or for the servers of the list,
// the next is made.
func (p *publisher) values(r *request, makePage pageFunc) (*liveValues, error) {
	if r.site.other == nil {
		p.making.Lock()
		defer p.making.Unlock()
		own := *r
		own.idle = func(wait func()) {
			p.making.Unlock()
			defer p.making.Lock() // also when it panics
			wait()
		}
		r = &own
	}
	made, err := r.page(makePage)
	if err != nil {
		return nil, err
	}
	made.values = &liveValues{Texts: make(map[string]value), Lines: make(map[string]string)}
	if err := p.console.note(r, made); err != nil {
		return nil, err
	}
	made.values.Shape = made.Shape()
	return made.values, nil
}

// without returns what differs from values before.
func (v *liveValues) without(before *liveValues) *liveValues {
	other := &liveValues{Texts: make(map[string]value), Lines: make(map[string]string)}
	for id, text := range v.Texts {
		if old, ok := before.Texts[id]; !ok || old != text {
			other.Texts[id] = text
		}
	}
	for id, d := range v.Lines {
		if old, ok := before.Lines[id]; !ok || old != d {
			other.Lines[id] = d
		}
	}
	if v.Shape != before.Shape {
		other.Shape = v.Shape
	}
	return other
}

// send sends all values to those who have come, and what has changed to the others. A viewer
// that has not taken the last ones is sent away: its browser comes again.
func (p *publisher) send(v *view, all, changed *liveValues) {
	whole, some := event(all), event(changed)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range append([]*viewer(nil), v.viewers...) {
		text := some
		if one.fresh {
			text, one.fresh = whole, false
		}
		select {
		case one.events <- text:
		default:
			v.drop(one)
			close(one.events)
		}
	}
}

// end ends the streams of a view.
func (p *publisher) end(v *view) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range v.viewers {
		close(one.events)
	}
	v.viewers = nil
	if p.views[v.key] == v {
		delete(p.views, v.key)
	}
}

// event returns values as an event of a stream.
func event(v *liveValues) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is maps of strings
	}
	return []byte("data: " + string(text) + "\n\n")
}

// livePages are those that may have a stream.
var livePages = map[string]pageFunc{
	"": overviewPage, "tubes": tubesPage, "tube": tubePage, "job": jobPage, "connections": connectionsPage, "connection": connectionPage,
	"activity": activityPage, "server": serverPage,
}

// events is the stream of a page, whose path is the parameter view.
func (c *Console) events(w http.ResponseWriter, h *http.Request) {
	r, makePage, err := c.viewOf(h)
	if err == nil {
		_, err = r.page(func(*request) (*page, error) { return nil, nil })
	}
	switch {
	case errors.Is(err, errUnknown):
		http.Error(w, "log in first", http.StatusUnauthorized)
		return
	case err != nil:
		http.Error(w, "there is no stream of this page", http.StatusBadRequest)
		return
	}
	v, leave, ok := c.live.join(r, makePage)
	if !ok {
		w.Header().Set("Retry-After", "30")
		http.Error(w, "there are too many streams: ask for the page again instead", http.StatusServiceUnavailable)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	c.stream(w, h, v)
}

// viewOf returns a request for the page that a stream is about.
func (c *Console) viewOf(h *http.Request) (*request, pageFunc, error) {
	u, err := url.Parse(h.URL.Query().Get("view"))
	if err != nil || u.Host != "" || u.Scheme != "" {
		return nil, nil, errNoView
	}
	path, ok := strings.CutPrefix(u.EscapedPath(), Prefix)
	if !ok {
		return nil, nil, errNoView
	}
	server := ""
	if below, ok := strings.CutPrefix(path, "s/"); ok {
		if server, path, ok = strings.Cut(below, "/"); !ok {
			return nil, nil, errNoView
		}
	}
	name, rest, _ := strings.Cut(path, "/")
	page := livePages[name]
	value, err := url.PathUnescape(rest)
	if page == nil || err != nil || (rest != "") != (name == "tube" || name == "job" || name == "connection") {
		return nil, nil, errNoView
	}
	asked := h.Clone(h.Context())
	asked.URL, asked.RequestURI, asked.Form = u, u.RequestURI(), nil
	asked.SetPathValue(name, value)
	asked.SetPathValue("server", server)
	r := c.newRequest(asked)
	r.live = true
	return r, page, nil
}

var errNoView = errors.New("console: there is no such view")

// stream writes the events of a viewer until one of them goes.
func (c *Console) stream(w http.ResponseWriter, h *http.Request, v *viewer) {
	out := http.NewResponseController(w)
	write := func(text []byte) bool {
		out.SetWriteDeadline(time.Now().Add(writeTime))
		out.SetReadDeadline(time.Time{}) // that of the request is over
		_, err := w.Write(text)
		return err == nil && out.Flush() == nil
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	if !write([]byte("retry: 2000\n\n")) {
		return
	}
	for {
		select {
		case text, open := <-v.events:
			if !open || !write(text) {
				return
			}
		case <-beat.C:
			if !write([]byte(": still here\n\n")) {
				return
			}
		case <-h.Context().Done():
			return
		case <-c.live.done:
			return
		}
	}
}
