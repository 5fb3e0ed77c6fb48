package console

import (
	"cmp"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// A workingView is the page of the reserved jobs of all tubes.
type workingView struct {
	listing
	Tube string
	All  bulkTarget
}

func workingPage(r *request) (*page, error) {
	v := &workingView{Tube: r.FormValue("tube"), All: bulkTarget{State: "reserved"}}
	v.listing = listing{Cursor: r.FormValue("cursor"), at: func(_, cursor string) string {
		return withQuery(r.site.Base+"working", "tube", v.Tube, "cursor", cursor)
	}}
	in := &admin.ListReserved{Tube: v.Tube, Cursor: v.Cursor, Limit: jobsPerPage}
	found, err := r.api().ListReserved(r.Context(), in)
	if err != nil {
		return nil, err
	}
	rows := make([]jobRow, len(found.Jobs))
	for i := range found.Jobs {
		j := &found.Jobs[i]
		rows[i] = jobRow{Job: j.Job, Kind: j.Class, After: j.Arguments, Worker: cmp.Or(j.Identity, j.Address)}
	}
	v.lists(r.jobList("working", rows, nil), found.Next)
	p := newPage("working", "Working", "working", v)
	return p, nil
}
