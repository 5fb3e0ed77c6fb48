package console

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/op"
	"github.com/beanpole-mq/beanpole/internal/query"
)

// A searchView is the page of a search.
type searchView struct {
	Q        string   // as the user typed it
	In       string   // conditions of the page, to which Q is added
	Words    []string // Q in words
	Problem  string   // the error in Q
	Tube     string   // set if there is only one tube
	Base     string   // path of the server's pages
	Back     string   // the search from its start
	Asked    bool
	Jobs     list
	Looked   uint64
	Total    uint64 // number of jobs to search; 0 if unknown, at the end, or if jobs have moved during the search
	Continue string // URL of the rest of the search
	All      bulkTarget
	Export   string
}

// markOf returns an expression that finds the match in a row, or nil.
func markOf(q *query.Query) *regexp.Regexp {
	var patterns []string
	for _, c := range slices.Concat(q.Parts...) {
		switch {
		case c.Not || c.Kind < query.Text:
		case c.Kind == query.Regexp:
			patterns = append(patterns, c.Value)
		case c.Kind == query.Text:
			patterns = append(patterns, regexp.QuoteMeta(c.Value))
		default:
			pattern := regexp.QuoteMeta(strings.ReplaceAll(strings.Trim(c.Name, "/"), "/", ".")) + ": "
			if c.Op == "=" {
				pattern += regexp.QuoteMeta(c.Value)
			}
			patterns = append(patterns, pattern)
		}
	}
	mark, err := regexp.Compile(strings.Join(patterns, "|"))
	if len(patterns) == 0 || err != nil { // in this case, there are no rows
		return nil
	}
	return mark
}

// A bulkTarget is the set of all jobs of a tube in a state, or of those that match a
// search. The action bar can act on it instead of the selected jobs.
type bulkTarget struct {
	Tube, State string // empty if there are several
	Count       uint64
	Q           string
	Dead        bool // whether a job has an origin
}

// Does returns the actions on jobs in the state. If State is empty, it returns all
// actions except release.
func (w *bulkTarget) Does() (all []string) {
	for _, do := range []string{"redrive-job", "kick-job", "release-job", "bury-job", "change-job", "move-job", "delete-job"} {
		if do == "redrive-job" && !w.Dead {
			continue
		}
		if slices.Contains(actions[ofWhole[do]].States, w.State) || w.State == "" && do != "release-job" {
			all = append(all, do)
		}
	}
	return all
}

// namesPage returns the completions that the script offers for the last word of a search.
func namesPage(r *request) (*page, error) {
	q := r.FormValue("q")
	at := strings.LastIndexAny(q, " ,:") + 1
	start := strings.LastIndexByte(q, ' ') + 1
	before, last := q[:at], q[at:]
	names := query.Names()
	switch {
	case strings.HasPrefix(q[start:], "tube:"):
		found, err := r.api().ListTubes(r.Context(), &admin.ListTubes{Q: last + "*", Sort: "name", Limit: foundTubes})
		if err := optional(err); err != nil && !isStatus(err, http.StatusBadRequest) {
			return nil, err
		}
		names = nil
		for _, t := range found.Tubes {
			names = append(names, t.Name)
		}
	case strings.HasPrefix(q[start:], "state:"):
		names = op.States
	case strings.HasPrefix(q[start:], "class:"):
		at = start + len("class:") // a class can contain colons
		before, last, names = q[:at], q[at:], r.classesIn(q[:start])
	case at > start:
		names = nil
	}
	var choices []string
	for _, name := range names {
		if strings.HasPrefix(name, last) && at+len(last) > start {
			choices = append(choices, before+name)
		}
	}
	return newPage("names", "Names", "", choices), nil
}

// classesIn returns the classes in a sample of the jobs of the tube that a search
// specifies.
func (r *request) classesIn(search string) (names []string) {
	asked, err := query.Parse(search)
	if err != nil || len(asked.Tubes) != 1 {
		return nil
	}
	in := admin.ListClasses{OfTube: admin.OfTube{Tube: asked.Tubes[0]}}
	if len(asked.States) == 1 {
		in.State = asked.States[0]
	}
	found, _ := r.api().ListClasses(r.Context(), &in) // empty without the rights, or for a pattern of tubes
	for _, c := range found.Classes {
		if c.Class != "" && !strings.ContainsAny(c.Class, " \"") { // a class that can be a word in a search
			names = append(names, c.Class)
		}
	}
	return names
}

// searchPage searches for jobs, up to the limits of one response of the API.
func searchPage(r *request) (*page, error) {
	v := &searchView{Base: r.site.Base, Q: strings.TrimSpace(r.FormValue("q") + " " + r.FormValue("in"))}
	p := newPage("search", "Search", "tubes", v)
	if err := missing(r.meOn("").Anywhere, "at least one tube", "stats", "peek"); err != nil || v.Q == "" {
		return p, err
	}
	v.Back = withQuery(v.Base+"search", "q", v.Q)
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
	v.Asked = true
	if v.Looked = found.Looked; found.Total != nil && found.Next != "" && v.Looked <= *found.Total {
		v.Total = *found.Total
	}
	rows, same := jobRows(found.Jobs, markOf(asked))
	v.Jobs = r.jobList("search", rows, same)
	if found.Next != "" {
		v.Continue = withQuery(v.Back, "cursor", found.Next)
	}
	v.All = bulkTarget{Tube: v.Tube, Q: v.Q, Dead: haveOrigin(found.Jobs)}
	if len(asked.States) == 1 {
		v.All.State = asked.States[0]
	}
	if v.Tube != "" {
		v.Export = withQuery(r.tubeLink(v.Tube, "")+"/export", "q", v.Q)
	}
	return p, nil
}
