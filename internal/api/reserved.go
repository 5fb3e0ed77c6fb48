package api

import (
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/api/list"
	"github.com/beanpole-mq/beanpole/internal/decode"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// A heldJob is a job that a session holds.
type heldJob struct {
	id    uint64
	since int64 // time of the reserve, in ns
	holder
	admin.ReservedJob
	body []byte // nil if it is not described
}

// heldColumns sort reserved jobs by the time of their reserve.
var heldColumns = list.Columns[heldJob]{
	By:  map[string]func(*heldJob) list.Key{"since": func(j *heldJob) list.Key { return list.Key{N: j.since} }},
	Tie: func(j *heldJob) list.Key { return list.Key{N: int64(j.id)} }, TieName: "id",
}

const (
	describedBytes = 1 << 20 // maximum total size of the bodies on a page that are described
	argumentsShown = 160     // in characters
)

// listReserved returns a page of reserved jobs, the longest held first.
func (r *request) listReserved(in *admin.ListReserved) (page admin.Reserved, err error) {
	q, err := heldColumns.Query("since", in.Cursor, in.Limit)
	if err != nil {
		return page, badRequest("%v", err)
	}
	var pattern access.Pattern
	if in.Tube != "" {
		pattern = strings.Split(in.Tube, ",")
	}
	everywhere := r.caller.Identity.Meets(statsEverywhere)
	err = shared(r, &r.api.holders, r.api.eachHolder, func(h *holder) {
		for _, hold := range h.holds {
			if (pattern == nil || pattern.Matches(hold.Tube)) && (everywhere || r.caller.Identity.Meets(statsNamed, hold.Tube)) {
				q.Show(&heldJob{id: hold.ID, since: h.at - hold.For, holder: *h})
			}
		}
	})
	if err != nil {
		return page, err
	}
	found, next := q.Page()
	page.Next = next
	if everywhere && pattern == nil {
		err = r.turn(func(e *engine.Engine, _ int64) error {
			page.Total = new(e.Stats().Reserved)
			return nil
		})
	}
	if err == nil {
		page.Jobs, err = r.reservedJobs(found, everywhere)
	}
	return page, err
}

// reservedJobs describes the jobs that are still held by the same session.
func (r *request) reservedJobs(found []heldJob, everywhere bool) (jobs []admin.ReservedJob, err error) {
	held, bytes := make([]heldJob, 0, len(found)), 0
	err = each(r, found, func(e *engine.Engine, now int64, j heldJob) error {
		st, o := e.JobStats(now, j.id)
		if e != j.engine || o != engine.OK || st.Holder != j.holder.id {
			return nil
		}
		j.Job = r.jobOf(&st)
		if c, ok := r.api.opt.Server.Connection(e, now, j.session); ok && everywhere {
			j.Address, j.Identity = c.Address, c.Identity
		}
		if bytes += int(st.Size); bytes <= describedBytes && r.caller.Identity.Meets(peekNamed, st.Tube) {
			j.body = shownBody(e, &st)
		}
		held = append(held, j)
		return nil
	})
	jobs = make([]admin.ReservedJob, len(held))
	rd := r.reading()
	for i := range held {
		if j := &held[i]; j.body != nil && rd.goOn() {
			j.Class, j.Arguments = decode.Summary(j.body, argumentsShown)
		}
		jobs[i] = held[i].ReservedJob
	}
	rd.end()
	return jobs, err
}
