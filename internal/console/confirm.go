package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// typedAbove is the number of jobs above which the user must type the name of the tube to
// delete them.
const typedAbove = 1000

// A confirmation is the page that asks the user before an action runs.
type confirmation struct {
	action
	Do      string
	Targets []string
	State   string
	Count   uint64 // current number of affected jobs
	Known   bool   // whether Count is known
	Typed   string // text that the user must type; empty means none
	Back    string
	Values  url.Values
	Q       string     // search for the affected jobs; empty means all
	Job     *admin.Job // the only target
	First   *admin.Job // first of the affected jobs
	Problem string     // reason why the action was not performed, with the submitted values
}

// Takes reports whether the form of the action has a field.
func (c *confirmation) Takes(field string) bool { return slices.Contains(c.fields, field) }

// Name returns the name of the form field with the targets.
func (c *confirmation) Name() string { return string(c.on) }

// Redrives returns the origin of the first job, if the action kicks it where it is.
func (c *confirmation) Redrives() string {
	if c.First == nil || !strings.HasPrefix(c.Do, "kick") {
		return ""
	}
	return c.First.Origin
}

func confirmPage(r *request) (*page, error) {
	if err := r.ParseForm(); err != nil {
		return nil, problemf(http.StatusBadRequest, "This form cannot be read.")
	}
	if whole := ofWhole[r.Form.Get("do")]; whole != "" && r.Form.Get("all") != "" {
		r.Form.Set("do", whole)
	}
	a, targets, err := r.site.parseAction(r.Form)
	if err != nil {
		return nil, err
	}
	if err := r.mayDo(&a, targets[0]); err != nil {
		return nil, err
	}
	c := &confirmation{action: a, Do: r.Form.Get("do"), Targets: targets, State: r.Form.Get("state"), Values: r.Form,
		Back: ownPath(cmp.Or(r.Form.Get("back"), r.site.Base))}
	if err := c.count(r); err != nil {
		return nil, err
	}
	if c.Many {
		c.Q = c.Values.Get("q")
		if strings.ContainsAny(c.Q, "\x00\r\n") { // a browser would send a different search, which could match other jobs
			return nil, problemf(http.StatusBadRequest, "The search contains a line break or a NUL, which forms cannot send. Use the API.")
		}
		c.First = r.firstOf(targets[0], c.State)
	}
	if c.on == aJob {
		job, err := r.job(targets[0])
		if err != nil && !isStatus(err, http.StatusForbidden) {
			return nil, err
		}
		if c.First = &job; len(targets) == 1 && err == nil {
			c.Job = &job
		}
		if c.Do == "copy-job" && !c.Values.Has("to") {
			c.Values.Set("to", job.Tube)
		}
	}
	if c.on == aMember {
		c.Asks = "Transfer leadership to member " + targets[0] + "?"
	}
	if c.Danger && c.Known && c.Count > typedAbove {
		c.Typed = targets[0]
		if len(targets) > 1 {
			c.Typed = "delete"
		}
	}
	if c.Takes("seconds") && !c.Values.Has("seconds") {
		c.Values.Set("seconds", "1h")
	}
	return newPage("confirm", c.Verb, "", c), nil
}

// firstOf returns the first job of a tube in a state, or nil.
func (r *request) firstOf(tube, state string) *admin.Job {
	jobs, err := r.api().ListJobs(r.Context(), &admin.ListJobs{OfTube: admin.OfTube{Tube: tube}, State: state, Limit: 1})
	if err != nil || len(jobs.Jobs) == 0 {
		return nil
	}
	return &jobs.Jobs[0]
}

// mayDo returns an error if the API would refuse an action on a target.
func (r *request) mayDo(a *action, target string) error {
	if r.isReadOnly() {
		return errReadOnly
	}
	needs := []string{"manage"}
	switch a.in.(type) {
	case admin.PutJob:
		needs = []string{"put"}
	case admin.CopyJob: // also requires the put right on the tube that the form specifies
		needs = []string{"peek"}
	}
	has, where := r.meOn("").Anywhere, "at least one tube"
	switch {
	case a.on == theServer || a.on == aConnection || a.on == aMember:
		has, where = r.meOn("").Everywhere, "all tubes"
	case a.on == aTube && target != "":
		has, where = r.meOn(target).Tube, target
	case a.on == aJob:
		job, err := r.job(target)
		if err != nil && !isStatus(err, http.StatusForbidden) {
			return err
		}
		if err == nil {
			has, where = r.meOn(job.Tube).Tube, job.Tube
		}
	}
	return missing(has, where, needs...)
}

// missing returns an error unless has contains all needed rights. where is the
// description of the tubes in the error.
func missing(has []string, where string, needs ...string) error {
	for _, right := range needs {
		if !slices.Contains(has, right) {
			return problemf(http.StatusForbidden, "You need the %s right on %s.", right, where)
		}
	}
	return nil
}

// count counts the affected jobs. If the form contains no state, count chooses the first
// state with jobs.
func (c *confirmation) count(r *request) error {
	if c.on != aTube || c.Do == "put-job" {
		return nil
	}
	var n admin.JobCounts
	c.Known = true
	for _, name := range c.Targets {
		t, err := r.api().GetTube(r.Context(), &admin.OfTube{Tube: name})
		if isStatus(err, http.StatusNotFound) && len(c.Targets) == 1 {
			return err
		}
		c.Known = c.Known && (err == nil || isStatus(err, http.StatusNotFound))
		n.Ready, n.Delayed, n.Buried, n.Reserved = n.Ready+t.Jobs.Ready, n.Delayed+t.Jobs.Delayed, n.Buried+t.Jobs.Buried, n.Reserved+t.Jobs.Reserved
	}
	if c.Many && !slices.Contains(c.States, c.State) {
		c.State = c.States[max(0, slices.IndexFunc(c.States, func(s string) bool { return jobsByState(&n)[s] > 0 }))]
		c.Values.Set("state", c.State)
	}
	c.Count = jobsByState(&n)[c.State]
	return nil
}
