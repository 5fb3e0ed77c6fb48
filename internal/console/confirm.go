package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/api/query"
)

// typedAbove is how many jobs must be there for a delete to ask for the name of the tube.
const typedAbove = 1000

// A confirmation is the page that asks for an action.
type confirmation struct {
	action
	Do      string
	Targets []string
	State   string
	Count   uint64 // of the jobs that it is about, now
	Known   bool   // Count is
	Typed   string // what must be typed; empty: nothing
	Back    string
	Values  url.Values
	Q       string // which of the jobs; empty: all
	Search  string // the same in words
	Job     *admin.Job
	Problem string // why it was not done, with what was sent
	Curls   string // the commands that do it
}

// Takes reports whether the action takes a field.
func (c *confirmation) Takes(field string) bool { return slices.Contains(c.fields, field) }

// Name is the field of the targets.
func (c *confirmation) Name() string { return string(c.on) }

func confirmPage(r *request) (*page, error) {
	if err := r.ParseForm(); err != nil {
		return nil, problemf(http.StatusBadRequest, "The form cannot be read.")
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
	if c.Many {
		if !slices.Contains(c.States, c.State) {
			c.State = c.States[0]
			c.Values.Set("state", c.State)
		}
		c.Q = c.Values.Get("q")
		if strings.ContainsAny(c.Q, "\x00\r\n") { // a browser would send another search, which may match other jobs
			return nil, problemf(http.StatusBadRequest, "What is looked for has an end of a line or a NUL, which no form brings back as it is: the API can do this.")
		}
		if asked, err := query.Parse(c.Q); err == nil && c.Q != "" {
			c.Search = "that match: " + strings.Join(asked.Words(), ", ")
		}
		c.count(r)
	}
	if c.on == aJob && len(targets) == 1 && (c.Takes("ttr") || c.Takes("to")) {
		job, err := r.job(targets[0])
		if err != nil {
			return nil, err
		}
		if c.Job = &job; c.Do == "copy-job" && !c.Values.Has("to") {
			c.Values.Set("to", job.Tube)
		}
	}
	if c.Danger && c.Known && c.Count > typedAbove {
		c.Typed = targets[0]
		if len(targets) > 1 {
			c.Typed = "delete"
		}
	}
	if c.Takes("seconds") && !c.Values.Has("seconds") {
		c.Values.Set("seconds", "1 h")
	}
	c.Curls = r.curls(&a, targets, c.Values)
	return newPage("confirm", c.Verb, "", c), nil
}

// mayDo returns why somebody may not even be asked about an action: the API says no to what is left.
func (r *request) mayDo(a *action, target string) error {
	if r.isReadOnly() {
		return errReadOnly
	}
	me, right := r.meOn(""), "manage"
	rights := me.Anywhere
	switch {
	case a.on == theServer || a.on == aConnection || a.on == aMember:
		rights = me.Everywhere
	case a.on == aTube && target != "":
		rights = r.meOn(target).Tube
	}
	switch a.in.(type) {
	case admin.PutJob, admin.CopyJob:
		right = "put"
	}
	if !slices.Contains(rights, right) {
		return problemf(http.StatusForbidden, "This needs the right %s.", right)
	}
	return nil
}

// shownCurls is how many commands are shown of an action on several targets.
const shownCurls = 12

// curls returns the commands that do an action, one for each target; empty: the server has no API.
func (r *request) curls(a *action, targets []string, v url.Values) string {
	var lines []string
	for i, target := range targets {
		if i == shownCurls {
			lines = append(lines, "# and so on, for "+num(int64(len(targets)-i))+" more")
			break
		}
		in, err := a.input(target, v)
		line := ""
		if err == nil { // else there is nothing to show yet
			line = r.curl(a.route, in)
		}
		if line == "" {
			return ""
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// count counts the jobs that the action is about.
func (c *confirmation) count(r *request) {
	c.Known = true
	for _, tube := range c.Targets {
		t, err := r.api().GetTube(r.Context(), &admin.OfTube{Tube: tube})
		if err != nil {
			c.Known = false
			return
		}
		c.Count += countOf(&t.Jobs, c.State)
	}
}
