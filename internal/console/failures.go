package console

import (
	"fmt"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// A failuresView is the page of failures.
type failuresView struct {
	admin.Failures
	Tube string
	Rows []failureRow
}

// A failureRow is a group of failed jobs, with the links to its jobs and actions.
type failureRow struct {
	admin.FailureGroup
	ID, Link string
	Tries    string // link to the page that retries or redrives the jobs; empty if they are ready
	TryAgain string // verb on that link
	Delete   string
}

// Sample describes the jobs from which the groups were formed.
func (v *failuresView) Sample() string {
	if v.Total != nil && v.Looked < *v.Total {
		return fmt.Sprintf("in a sample: %s of %s jobs", numOf(v.Looked), numOf(*v.Total))
	}
	return "in " + plural(v.Looked, "job", "jobs")
}

func failuresPage(r *request) (*page, error) {
	v := &failuresView{Tube: r.FormValue("tube")}
	in := &admin.ListFailures{Tube: v.Tube}
	var err error
	if v.Failures, err = r.api().ListFailures(r.Context(), in); err != nil {
		return nil, err
	}
	back := withQuery(r.site.Base+"failures", "tube", v.Tube)
	manages := r.manages()
	for _, g := range v.Groups {
		row := failureRow{FailureGroup: g, ID: rowID(g.Q), Link: withQuery(r.site.Base+"search", "q", g.Q)}
		ask := func(do string) string {
			return withQuery(r.site.Base+"confirm", "do", do, "tube", g.Tube, "state", g.State, "q", g.Q, "back", back)
		}
		if manages(g.Tube) {
			again := "kick-tube"
			if g.Origin != "" && g.State == "buried" {
				again = "redrive-jobs"
			}
			if row.Delete = ask("clear-tube"); g.State != "ready" {
				row.Tries, row.TryAgain = ask(again), actions[again].Verb
			}
		}
		v.Rows = append(v.Rows, row)
	}
	p := newPage("failures", "Failures", "failures", v)
	return p, nil
}

// clock returns the time of day of a time of the API, or its date if the time is more
// than a day ago.
func clock(t any) string {
	at := timeOf(t)
	if time.Since(at) > 24*time.Hour {
		return at.Format(time.DateOnly)
	}
	return at.Format("15:04")
}
