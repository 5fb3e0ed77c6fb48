package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/op"
	"github.com/beanpole-mq/beanpole/internal/query"
)

// A tubeView is the page of a tube.
type tubeView struct {
	admin.Tube
	Link    string
	State   string
	States  []stateTab
	Jobs    list
	Next    string
	First   string // link to the first page; empty on that page
	Clients list
	More    bool // whether there are more clients
	History historyView
	Gone    bool
	Bodies  bool
	Why     admin.Explanation
	Classes []classChip
	Sample  admin.Classes // the sample whose most frequent classes Classes contains
	All     bulkTarget
}

// A classChip is a class of the tube's jobs, with the search for them.
type classChip struct {
	admin.Class
	Link string
}

const (
	sampledJobs  = 500
	shownClasses = 12
)

// addClasses adds the classes of the first jobs, except for live values.
func (v *tubeView) addClasses(r *request) (err error) {
	if !v.Bodies || r.live || jobsByState(&v.Tube.Jobs)[v.State] == 0 {
		return nil
	}
	v.Sample, err = r.api().ListClasses(r.Context(), &admin.ListClasses{OfTube: admin.OfTube{Tube: v.Name}, State: v.State, Limit: sampledJobs})
	for _, c := range v.Sample.Classes {
		if c.Class != "" && len(v.Classes) < shownClasses {
			v.Classes = append(v.Classes, classChip{c, withQuery(r.site.Base+"search", "q", fmt.Sprintf("tube:%s state:%s class:%s", v.Name, v.State, query.Quote(c.Class)))})
		}
	}
	return optional(notFound(err))
}

// A stateTab is a link to the jobs in a state.
type stateTab struct {
	Name  string
	Count uint64
}

const (
	jobsPerPage    = 50
	clientsOfATube = 20
)

func tubePage(r *request) (*page, error) {
	name := r.PathValue("tube")
	v := &tubeView{}
	tube, api, ctx := admin.OfTube{Tube: name}, r.api(), r.Context()
	var err error
	v.Tube, err = api.GetTube(ctx, &tube)
	if isStatus(err, http.StatusNotFound) {
		return r.tubeGone(name), nil
	}
	if err != nil {
		return nil, err
	}
	v.Link = r.tubeLink(name, "")
	v.State = cmp.Or(r.FormValue("state"), v.busiestState())
	me := r.meOn(name)
	v.Bodies = slices.Contains(me.Tube, "peek")
	var past admin.History
	var shown span
	v.History, shown = r.newHistoryView(r.tubeLink(name, r.FormValue("state")))
	var clients admin.Connections
	list := &admin.ListJobs{OfTube: tube, State: v.State, Cursor: r.FormValue("cursor"), Limit: jobsPerPage, Bodies: v.Bodies}
	var jobs admin.Jobs
	err = r.parallel(r.site,
		func() (err error) { jobs, err = api.ListJobs(ctx, list); return notFound(err) },
		func() error { return v.addClasses(r) },
		func() (err error) { v.Why, err = api.ExplainTube(ctx, &tube); return optional(notFound(err)) },
		func() (err error) {
			past, err = api.GetTubeHistory(ctx, &admin.GetTubeHistory{OfTube: tube, Step: shown.step, Points: new(shown.points)})
			return optional(notFound(err))
		},
		func() (err error) {
			clients, err = api.ListConnections(ctx, &admin.ListConnections{Tube: name, Limit: clientsOfATube})
			return optional(err)
		},
	)
	if err != nil {
		return nil, err
	}
	if len(past.Series["ready"]) > 0 {
		levels := jobsByState(&v.Tube.Jobs)
		levels["oldest_ready"] = uint64(v.OldestReady)
		v.History.Charts = historyCharts(&past, levels, &shown)
	}
	v.Clients, v.More = r.clientList(clients.Connections), clients.Next != ""
	v.addJobs(r, &jobs)
	for _, s := range op.States {
		v.States = append(v.States, stateTab{s, jobsByState(&v.Tube.Jobs)[s]})
	}
	v.All = bulkTarget{Tube: name, State: v.State, Count: jobsByState(&v.Tube.Jobs)[v.State], Dead: haveOrigin(jobs.Jobs)}
	p := newPage("tube", name, "tubes", v)
	p.Me = me
	if r.FormValue("state") == "" {
		p.View = withQuery(r.tubeLink(name, ""), "state", v.State, "cursor", r.FormValue("cursor"), "span", r.FormValue("span")) // preserves the state of the page
	}
	p.shape = append(p.shape, v.History.shape(), v.Why.Policy, fmt.Sprint(unwatched(&v.Tube), v.Pause > 0, v.Recent != nil)) // values that determine the tags and actions
	return p, nil
}

// jobsByState returns the numbers of jobs by state. The states are also names of series.
func jobsByState(n *admin.JobCounts) map[string]uint64 {
	return map[string]uint64{"ready": n.Ready, "reserved": n.Reserved, "delayed": n.Delayed, "buried": n.Buried}
}

// haveOrigin reports whether at least one of the jobs has an origin, and can be redriven.
func haveOrigin(jobs []admin.Job) bool {
	return slices.ContainsFunc(jobs, func(j admin.Job) bool { return j.Origin != "" })
}

// notFound returns nil for the error that an object no longer exists, and any other error
// unchanged.
func notFound(err error) error {
	if isStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// tubeGone returns the page for a tube that does not exist.
func (r *request) tubeGone(name string) *page {
	v := &tubeView{Gone: true}
	v.Name, v.Link = name, r.tubeLink(name, "")
	p := newPage("tube", name, "tubes", v)
	p.status, p.shape = http.StatusNotFound, []string{"gone"}
	return p
}

// busiestState returns the state that is shown first.
func (v *tubeView) busiestState() string {
	for _, s := range []string{"ready", "buried", "reserved", "delayed"} {
		if jobsByState(&v.Tube.Jobs)[s] > 0 {
			return s
		}
	}
	return "ready"
}

// addJobs adds the rows of a page of jobs.
func (v *tubeView) addJobs(r *request, page *admin.Jobs) {
	for i := range page.Jobs {
		if r.live { // bodies are not live values
			page.Jobs[i].Body, page.Jobs[i].BodyBase64 = nil, nil
		}
	}
	rows, same := jobRows(page.Jobs, nil)
	v.Jobs = r.jobList(v.State, rows, same)
	here := r.tubeLink(v.Name, "")
	if page.Next != "" {
		v.Next = withQuery(here, "state", v.State, "cursor", page.Next)
	}
	if r.FormValue("cursor") != "" {
		v.First = withQuery(here, "state", v.State)
	}
}

// A putView is the page that puts a job: the fields of its form.
type putView struct {
	url.Values
	Problem string // reason why the job was not put
}

// putting is the action of putView.
var putting = actions["put-job"]

func putPage(r *request) (*page, error) {
	tube := cmp.Or(r.PathValue("tube"), r.FormValue("tube"))
	if err := r.mayDo(&putting, tube); err != nil && (tube != "" || !slices.Contains(r.meOn("").Anywhere, "put")) {
		return nil, err
	}
	form := url.Values{"tube": {tube}, "priority": {"1024"}, "ttr": {"60"}, "delay": {"0"}}
	return r.putForm(form, ""), nil
}

// putForm returns the page with the values of a form, and the problem if the put failed.
func (r *request) putForm(form url.Values, problem string) *page {
	tube := form.Get("tube")
	p := newPage("put", "Put a job", "tubes", &putView{form, problem})
	p.Me = r.meOn(tube)
	if problem != "" {
		p.status = http.StatusUnprocessableEntity
	}
	return p
}
