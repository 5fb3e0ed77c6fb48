package console

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/api/query"
)

// A searchView is the page of a search.
type searchView struct {
	Q        string   // as it was typed
	In       string   // empty: what is looked for is all in Q
	Words    []string // what Q means
	Problem  string   // what is wrong with Q
	Tube     string   // if there is one only
	Base     string   // of the server's pages
	Asked    bool
	Jobs     list
	Looked   uint64
	Total    uint64 // 0: not known
	Continue string // there is more to look at
	All      wholeState
	Export   string
}

// markOf finds in a row what was looked for; nil: nothing was.
func markOf(q *query.Query) *regexp.Regexp {
	var patterns []string
	for _, b := range q.Bodies {
		switch pattern := regexp.QuoteMeta(b.Text); {
		case b.Kind == query.Regexp:
			patterns = append(patterns, b.Text)
		case b.Kind == query.Text:
			patterns = append(patterns, pattern)
		default:
			if pattern = regexp.QuoteMeta(strings.ReplaceAll(strings.Trim(b.Text, "/"), "/", ".")) + ": "; b.Op == "=" {
				pattern += regexp.QuoteMeta(b.Value)
			}
			patterns = append(patterns, pattern)
		}
	}
	mark, err := regexp.Compile(strings.Join(patterns, "|"))
	if len(patterns) == 0 || err != nil { // of what is no expression there are no rows
		return nil
	}
	return mark
}

// A wholeState is all jobs of a tube in a state, or those of them that match a search: what a bar can act on in the place of the selected jobs.
type wholeState struct {
	Tube, State string // empty: there is no such thing
	Count       uint64
	Q           string
}

// Does are the actions on jobs in the state; without a state: those that some of the jobs may need.
func (w *wholeState) Does() (all []string) {
	for _, do := range []string{"kick-job", "release-job", "bury-job", "change-job", "move-job", "delete-job"} {
		if slices.Contains(actions[ofWhole[do]].States, w.State) || w.State == "" && do != "release-job" {
			all = append(all, do)
		}
	}
	return all
}

// searchPage looks for jobs: as far as one answer of the API goes.
func searchPage(r *request) (*page, error) {
	if r.site.Plain() {
		return nil, problemf(http.StatusNotImplemented, "A beanstalkd does not search: its protocol has no command for it.")
	}
	v := &searchView{Base: r.site.Base, Q: strings.TrimSpace(r.FormValue("q") + " " + r.FormValue("in"))}
	p := newPage("search", "Search", "tubes", v)
	if v.Q == "" {
		return p, nil
	}
	wrong := func(why string) (*page, error) {
		v.Problem, p.status = sentence(why), http.StatusUnprocessableEntity
		return p, nil
	}
	asked, err := query.Parse(v.Q)
	if err != nil {
		return wrong(err.Error())
	}
	v.Words = asked.Words()
	if len(asked.Tubes) == 1 && !strings.ContainsAny(asked.Tubes[0], "*?") {
		v.Tube = asked.Tubes[0]
		p.Me = r.meOn(v.Tube)
	}
	in := admin.SearchAll{Search: admin.Search{Q: &v.Q}, Cursor: r.FormValue("cursor"), Limit: jobsPerPage}
	found, err := r.api().SearchAll(r.Context(), &in)
	if isStatus(err, http.StatusBadRequest) {
		return wrong(strings.TrimPrefix(err.Error(), "q: "))
	}
	if err != nil {
		return nil, err
	}
	v.Asked, p.Curl = true, r.curl("GET /search", &in)
	if v.Looked = found.Looked; found.Total != nil {
		v.Total = max(*found.Total, v.Looked)
	}
	rows, same := jobRows(found.Jobs, markOf(asked))
	v.Jobs = r.jobList("search", rows, same)
	if found.Next != "" {
		v.Continue = withQuery(v.Base+"search", "q", v.Q, "cursor", found.Next)
	}
	v.All = wholeState{Tube: v.Tube, Q: v.Q}
	if len(asked.States) == 1 {
		v.All.State = asked.States[0]
	}
	if v.Tube != "" {
		v.Export = withQuery(r.tubeLink(v.Tube, "")+"/export", "q", v.Q)
	}
	return p, nil
}
