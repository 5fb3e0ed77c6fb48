package console

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/console/decode"
)

// A bodySearch is which bodies the form of a search asks for.
type bodySearch struct{ By, What string }

// searchKinds are the ways to search, in the order of the form.
var searchKinds = [][2]string{{"text", "has the text"}, {"regexp", "matches the regular expression"}, {"pointer", "has in JSON"}}

// params returns the search as parameters of the API. What a JSON pointer must be is after "=".
func (s bodySearch) params() []string {
	switch {
	case s.What == "":
		return nil
	case s.By == "pointer":
		pointer, equals, there := strings.Cut(s.What, "=")
		if pointer = strings.TrimSpace(pointer); there {
			return []string{"pointer", pointer, "equals", strings.Trim(strings.TrimSpace(equals), `"`)}
		}
		return []string{"pointer", pointer}
	}
	return []string{s.By, s.What}
}

// searchOf reads the search that a form or a URL has as the parameters of the API.
func searchOf(v url.Values) bodySearch {
	for _, kind := range searchKinds {
		if text := v.Get(kind[0]); text != "" {
			if v.Has("equals") {
				text += " = " + v.Get("equals")
			}
			return bodySearch{kind[0], text}
		}
	}
	return bodySearch{}
}

// mark finds in a row what was looked for; nil: nothing was.
func (s bodySearch) mark() *regexp.Regexp {
	pattern := s.What
	switch s.By {
	case "text":
		pattern = regexp.QuoteMeta(s.What)
	case "pointer":
		pointer, equals, there := strings.Cut(s.What, "=")
		pattern = regexp.QuoteMeta(strings.ReplaceAll(strings.Trim(pointer, "/ "), "/", ".")) + ": "
		if there {
			pattern += regexp.QuoteMeta(strings.Trim(strings.TrimSpace(equals), `"`))
		}
	}
	mark, _ := regexp.Compile(pattern) // of what is none there are no rows
	return mark
}

// words says which jobs are wanted; empty: all.
func (s bodySearch) words() string {
	switch {
	case s.What == "":
		return ""
	case s.By == "text":
		return "whose bodies have the text “" + s.What + "”"
	case s.By == "regexp":
		return "whose bodies match " + s.What
	}
	return "whose bodies have in JSON " + s.What
}

// A searchView is the page of a search.
type searchView struct {
	Tube, State string // empty: any
	bodySearch
	Base     string // of the server's pages
	Kinds    [][2]string
	Asked    bool
	Jobs     []jobRow
	Same     []decode.Field // that all of them have
	Looked   uint64
	Total    uint64 // 0: not known
	Continue string // there is more to look at
	Params   []string
	All      wholeState
	Export   string
}

// A wholeState is all jobs of a tube in a state, or those of them that match a search: what a bar can act on in the place of the selected jobs.
type wholeState struct {
	Tube, State string // empty: there is no such thing
	Count       uint64
	Search      map[string]string
}

// Does are the actions on jobs in the state; without a state: those that some of the jobs may need.
func (w *wholeState) Does() (all []string) {
	c := new(confirmation)
	for _, do := range []string{"kick-job", "release-job", "bury-job", "change-job", "move-job", "delete-job"} {
		if c.Do = ofWhole[do]; slices.Contains(c.States(), w.State) || w.State == "" && do != "release-job" {
			all = append(all, do)
		}
	}
	return all
}

// searchPage looks for jobs by their bodies: as far as one answer of the API goes.
func searchPage(r *request) (*page, error) {
	if r.site.isPlain() {
		return nil, problemf(http.StatusNotImplemented, "A beanstalkd does not search: its protocol has no command for it.")
	}
	q := r.URL.Query()
	v := &searchView{Base: r.site.base, Tube: strings.TrimSpace(q.Get("tube")), State: q.Get("state"), bodySearch: bodySearch{q.Get("by"), q.Get("what")}, Kinds: searchKinds}
	if !slices.ContainsFunc(searchKinds, func(kind [2]string) bool { return kind[0] == v.By }) {
		v.By = "text"
	}
	p := newPage("search", "Search", "tubes", v)
	p.NoLive = true
	if v.Tube != "" {
		p.Me = r.meOn(v.Tube)
	}
	if v.Params = v.params(); v.Params == nil {
		return p, nil
	}
	v.Asked = true
	all := admin.SearchAll{Search: searchInput(v.State, v.Params), Cursor: q.Get("cursor"), Limit: jobsPerPage}
	ofTube := admin.SearchTube{OfTube: admin.OfTube{Tube: v.Tube}, SearchAll: all}
	var found admin.Found
	var err error
	if v.Tube != "" {
		p.Curl = r.curl("GET /tubes/{tube}/search", &ofTube)
		found, err = r.api().SearchTube(r.Context(), &ofTube)
	} else {
		p.Curl = r.curl("GET /search", &all)
		found, err = r.api().SearchAll(r.Context(), &all)
	}
	if err != nil && !(v.Tube != "" && isStatus(err, http.StatusNotFound)) {
		return nil, err
	}
	v.Looked = found.Looked
	if found.Total != nil {
		v.Total = max(*found.Total, v.Looked)
	}
	v.Jobs, v.Same = jobRows(found.Jobs, v.mark())
	if found.Next != "" {
		v.Continue = v.link("cursor", found.Next)
	}
	v.All = wholeState{Tube: v.Tube, State: v.State, Search: make(map[string]string)}
	for pair := range slices.Chunk(v.Params, 2) {
		v.All.Search[pair[0]] = pair[1]
	}
	if v.Tube != "" {
		v.Export = withQuery(r.tubeLink(v.Tube, "")+"/export", append([]string{"state", v.State}, v.Params...)...)
	}
	return p, nil
}

// searchInput is a search as the API takes it, of names of parameters and their values.
func searchInput(state string, params []string) admin.Search {
	s := admin.Search{State: state}
	fields := map[string]**string{"text": &s.Text, "regexp": &s.Regexp, "pointer": &s.Pointer, "equals": &s.Equals}
	for pair := range slices.Chunk(params, 2) {
		if pair[1] != "" {
			*fields[pair[0]] = &pair[1]
		}
	}
	return s
}

// link is the URL of the page.
func (v *searchView) link(more ...string) string {
	return withQuery(v.Base+"search", append([]string{"tube", v.Tube, "state", v.State, "by", v.By, "what", v.What}, more...)...)
}
