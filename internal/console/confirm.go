package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/query"
)

// typedAbove is how many jobs must be there for a delete to ask for the name of the tube.
const typedAbove = 1000

// A confirmation is the page that asks for an action.
type confirmation struct {
	action
	Do      string
	Targets []string
	Tube    bool // the targets are tubes
	State   string
	Count   uint64 // of the jobs that it is about, now
	Known   bool   // Count is
	Typed   string // what must be typed; empty: nothing
	Back    string
	Values  url.Values
	Search  string // which of the jobs, in words; empty: all
	Job     *admin.Job
	Problem string // why it was not done, with what was sent
}

// ToFirst is the tube that a copy goes to, unless somebody types another.
func (c *confirmation) ToFirst() string {
	if c.Job != nil && c.Do == "copy-job" {
		return c.Job.Tube
	}
	return ""
}

// Sent is what a field of the form had when it was sent, or else what it begins with.
func (c *confirmation) Sent(field, first string) string {
	if c.Problem == "" {
		return first
	}
	return c.Values.Get(field)
}

// Danger reports whether something is lost.
func (c *confirmation) Danger() bool { return c.danger }

// Many reports whether it is about the jobs of a tube.
func (c *confirmation) Many() bool { return c.many }

// SearchFields are what the form passes on of a search.
func (c *confirmation) SearchFields() map[string]string {
	all := make(map[string]string)
	for _, name := range searchFields {
		if c.many && c.Values.Has(name) {
			all[name] = c.Values.Get(name)
		}
	}
	return all
}

// changedByForms reports whether a browser would send another search than it was given, which may match other jobs.
func (c *confirmation) changedByForms() bool {
	return slices.ContainsFunc(searchFields, func(name string) bool { return strings.ContainsAny(c.Values.Get(name), "\x00\r\n") })
}

// Takes reports whether the action takes a field.
func (c *confirmation) Takes(field string) bool { return slices.Contains(c.fields, field) }

// Name is the field of the targets.
func (c *confirmation) Name() string {
	return [...]string{theServer: "server", aTube: "tube", aJob: "job", aConnection: "connection", aTask: "task", aMember: "member"}[c.on]
}

// Sentence says what will be done, and to how much.
func (c *confirmation) Sentence() string {
	what := c.Name()
	if c.on == theServer {
		if c.Do == "drain" {
			return "Take no new jobs from now on? Puts are answered DRAINING; all else works."
		}
		if c.Do == "rewrite-journal" {
			return "Rewrite the journal, so that it has only what is still there?"
		}
		return "Take new jobs again?"
	}
	subject := fmt.Sprintf("%s %s", what, c.Targets[0])
	if len(c.Targets) > 1 {
		subject = fmt.Sprintf("%d %ss", len(c.Targets), what)
	}
	if c.Do == "lead" {
		return "Let " + subject + " lead?"
	}
	if c.Takes("kind") {
		return fmt.Sprintf("%s: “%s”?", c.Verb, strings.TrimSuffix(strings.TrimSpace(c.Values.Get("kind")+" "+c.Targets[0]), " *"))
	}
	if !c.many {
		return fmt.Sprintf("%s %s?", c.Verb, subject)
	}
	which := ""
	if c.Search != "" {
		which = " " + c.Search
	}
	return fmt.Sprintf("%s the %s jobs of %s%s?", c.Verb, c.State, subject, which)
}

// Consequence says what that means.
func (c *confirmation) Consequence() string {
	switch c.Do {
	case "clear-tube", "delete-job":
		return "Deleted jobs cannot be brought back."
	case "kick-tube", "kick-job":
		return "They become ready, and workers may take them at once."
	case "change-job", "change-jobs":
		return "What is empty stays as it is. A delay begins now; 0 makes the job ready."
	case "redrive-jobs":
		return "They become ready in the tubes that a policy has moved them out of, with as many tries again. Those without an origin stay, unless a tube is named."
	case "copy-job":
		return "This makes a new job with the same body. The other one stays as it is."
	case "cancel-task":
		return "What it has done stays done."
	case "close-connection":
		return "The jobs that it holds become ready again. Its client may connect again."
	case "lead":
		return "Nothing is lost. The connections of all clients end, as with a restart, and they come again. Any member can lead again later."
	case "expect":
		return "It comes last then and does not count, for everybody who looks. A restart of the server forgets it."
	case "pause-tube":
		return "No job of it is handed out meanwhile. Jobs can be put."
	case "bury-job", "bury-jobs":
		return "Nobody gets them until they are kicked. Who holds one loses it."
	case "release-job", "release-jobs":
		return "They are taken from whoever holds them, and become ready, or delayed."
	}
	return ""
}

// States are those that the action can be about.
func (c *confirmation) States() []string {
	switch c.Do {
	case "kick-tube":
		return []string{"buried", "delayed"}
	case "redrive-jobs":
		return []string{"buried"}
	case "release-jobs":
		return []string{"reserved"}
	case "bury-jobs":
		return []string{"ready", "delayed", "reserved"}
	}
	return []string{"ready", "delayed", "buried"}
}

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
	c := &confirmation{action: a, Do: r.Form.Get("do"), Targets: targets, Tube: a.on == aTube, State: r.Form.Get("state"), Values: r.Form,
		Back: ownPath(cmp.Or(r.Form.Get("back"), r.site.base))}
	if c.many && !slices.Contains(c.States(), c.State) {
		c.State = c.States()[0]
		if c.Do == "clear-tube" || c.Do == "move-jobs" {
			c.State = "buried"
		}
		c.Values.Set("state", c.State)
	}
	if c.many {
		if c.changedByForms() {
			return nil, problemf(http.StatusBadRequest, "What is looked for has an end of a line or a NUL, which no form brings back as it is: the API can do this.")
		}
		if asked, err := query.Parse(c.Values.Get("q")); err == nil && c.Values.Get("q") != "" {
			c.Search = "that match: " + strings.Join(asked.Words(), ", ")
		}
		c.count(r)
	}
	if c.on == aJob && len(targets) == 1 && (c.Takes("ttr") || c.Takes("to")) {
		job, err := r.job(targets[0])
		if err != nil {
			return nil, err
		}
		c.Job = &job
	}
	if c.danger && c.Known && c.Count > typedAbove {
		c.Typed = targets[0]
		if len(targets) > 1 {
			c.Typed = "delete"
		}
	}
	p := newPage("confirm", c.Verb, "", c)
	p.Curl, p.NoLive = r.curls(&a, targets, c.Values), true
	return p, nil
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
	case a.on == aTube && target != "" && !strings.Contains(target, "*"): // of a finding it may be a pattern, or the server
		rights = r.meOn(target).Tube
	}
	switch a.in.(type) {
	case admin.PutJob, admin.CopyJob:
		right = "put"
	}
	if !has(rights, right) {
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
		c.Count += map[string]uint64{"ready": t.Jobs.Ready, "delayed": t.Jobs.Delayed, "buried": t.Jobs.Buried, "reserved": t.Jobs.Reserved}[c.State]
	}
}
