package api

import (
	"fmt"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/api/tubes"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

const (
	// A page of a search ends after this number of jobs, bytes of bodies, or time. So
	// each request ends soon, and a client with enough results need not send another
	// request.
	jobsPerSearch  = 50_000
	bytesPerSearch = 32 << 20
	timePerSearch  = 100 * time.Millisecond
)

// searchTube searches a tube. searchAll searches all tubes.
func (r *request) searchTube(in *admin.SearchTube) (admin.Found, error) {
	return r.searchJobs([]string{r.tube}, &in.SearchAll)
}

func (r *request) searchAll(in *admin.SearchAll) (admin.Found, error) { return r.searchJobs(nil, in) }

// searchJobs searches tubes. If tubes is nil, it searches all tubes whose bodies the
// client may see.
func (r *request) searchJobs(tubes []string, in *admin.SearchAll) (page admin.Found, err error) {
	s, err := jobSearch(&in.Search)
	if err != nil {
		return page, err
	}
	at, err := parseSearchCursor(in.Cursor)
	if err != nil {
		return page, err
	}
	end, err := r.beginScan(aPage)
	if err != nil {
		return page, err
	}
	defer end()
	page = admin.Found{Jobs: []admin.Job{}, Looked: at.looked}
	if tubes, page.Total, err = r.searched(tubes, s); err != nil {
		return page, err
	}
	w := jobScan{places: placesOf(tubes, s.states), bodies: searchedBytes}
	at.seek(&w, s.states)
	err = r.scan(&w, r.fill(&page, &w, r.reading(), s, in.Limit))
	return page, err
}

// searched returns the tubes of a search, and the number of jobs to search if the client
// may see it.
func (r *request) searched(named []string, s *search) (found []string, total *uint64, err error) {
	err = r.turn(func(e *engine.Engine, now int64) error {
		var n uint64
		if len(named) > 0 {
			st, o := e.TubeStats(now, []byte(named[0]))
			if o != engine.OK {
				return tubes.ErrNone(r.tube)
			}
			n = countOf(s.states, st.Ready, st.Reserved, st.Delayed, st.Buried)
			found, total = named, &n
			return nil
		}
		names := e.TubeNames()
		for i := range names.Len() {
			if name := names.At(i); s.tubes == nil || s.tubes.Matches(name) {
				found = append(found, name)
			}
		}
		switch st := e.Stats(); {
		case s.tubes != nil && len(found) <= perTurn:
			for _, name := range found {
				st, _ := e.TubeStats(now, []byte(name))
				n += countOf(s.states, st.Ready, st.Reserved, st.Delayed, st.Buried)
			}
			total = &n
		case s.tubes == nil && r.caller.Identity.Meets(statsEverywhere):
			n = countOf(s.states, st.Ready, st.Reserved, st.Delayed, st.Buried)
			total = &n
		}
		return nil
	})
	if len(named) == 0 {
		all := len(found)
		found = slices.DeleteFunc(found, func(name string) bool { return !r.caller.Identity.Meets(bodiesNamed, name) })
		if slices.Sort(found); len(found) < all {
			total = nil
		}
	}
	return found, total, err
}

// countOf returns the number of jobs in the given states.
func countOf(states []engine.State, ready, reserved, delayed, buried uint64) (n uint64) {
	counts := map[engine.State]uint64{engine.Ready: ready, engine.Reserved: reserved, engine.Delayed: delayed, engine.Buried: buried}
	for _, s := range states {
		n += counts[s]
	}
	return n
}

// fill returns a function that adds the matching jobs of a slice to the page. The
// function reports whether the page continues.
func (r *request) fill(page *admin.Found, w *jobScan, rd *reading, s *search, n int) func([]scannedJob) bool {
	looked, bytes, shown := 0, 0, 0
	return func(slice []scannedJob) bool {
		rd.each(slice, s, func(j *scannedJob, matches bool) bool {
			looked++
			bytes += len(j.body)
			page.Looked++
			if matches {
				page.Jobs = append(page.Jobs, r.shown(j, true, &shown))
			}
			if len(page.Jobs) == n || shown >= largestBody || rd.spent >= timePerSearch {
				page.Next = searchCursor{j.Tube, j.State, j.at, page.Looked}.String()
			}
			return page.Next == ""
		})
		if page.Next == "" && len(w.places) > 0 && (looked >= jobsPerSearch || bytes >= bytesPerSearch) {
			page.Next = searchCursor{w.places[0].tube, w.places[0].state, w.after, page.Looked}.String()
		}
		return page.Next == ""
	}
}

// reading returns the reading of the request.
func (r *request) reading() *reading {
	return &reading{ctx: r.ctx, gate: r.api.throttle.bodies}
}

// A searchCursor is the position at which a search continues.
type searchCursor struct {
	tube   string // empty at the start
	state  engine.State
	at     engine.Cursor
	looked uint64
}

// String returns the cursor as text that needs no escaping in a URL.
func (c searchCursor) String() string {
	return inCursor.EncodeToString(fmt.Appendf(nil, "%s %d %v %d", c.tube, c.state, c.at, c.looked))
}

func parseSearchCursor(text string) (c searchCursor, err error) {
	if text == "" {
		return c, nil
	}
	raw, _ := inCursor.DecodeString(text)
	at := ""
	fmt.Sscanf(string(raw), "%s %d %s %d", &c.tube, &c.state, &at, &c.looked)
	if c.at, err = engine.ParseCursor(at); err != nil || c.String() != text { // the text was not created from a cursor
		return c, badCursor()
	}
	return c, nil
}

// seek positions a scan at a cursor. The tubes of the scan are sorted by name.
func (c *searchCursor) seek(w *jobScan, states []engine.State) {
	if c.tube == "" {
		return
	}
	rank := slices.Index(states, c.state)
	for len(w.places) > 0 {
		at := w.places[0]
		if at.tube > c.tube || at.tube == c.tube && slices.Index(states, at.state) >= rank {
			break
		}
		w.places = w.places[1:]
	}
	if len(w.places) > 0 && w.places[0] == (place{c.tube, c.state}) {
		w.after = c.at
	}
}
