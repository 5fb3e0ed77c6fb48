package api

import (
	"fmt"
	"net/http"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/api/tubes"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/jobjson"
	"github.com/beanpole-mq/beanpole/internal/op"
	"github.com/beanpole-mq/beanpole/internal/rights"
)

// jobOf returns a job as the client sees it: without an origin on which the client has no
// right. It omits the reason of a failure if the client cannot see the body, and the
// worker if the client cannot see connections.
func (r *request) jobOf(st *engine.JobStats) admin.Job {
	origin := st.Origin
	if origin != "" && !r.caller.Identity.Meets(anyNamed, origin) {
		origin = ""
	}
	f, failed := st.Failure()
	failure := jobjson.FailureOf(f, failed, st.State == engine.Buried)
	if failure != nil && !r.caller.Identity.Meets(statsEverywhere) {
		failure.Identity, failure.Address = "", ""
	}
	if failure != nil && !r.caller.Identity.Meets(peekOfJob, st.Tube) {
		failure.Class, failure.Reason = "", ""
	}
	return admin.Job{
		ID: st.ID, Tube: st.Tube, State: st.State.String(), Priority: st.Pri, Size: int64(st.Size),
		Age: st.Age, Delay: st.Delay, TTR: st.TTR, TimeLeft: st.TimeLeft, ReservedBy: st.Holder, Held: seconds(st.Held), Touches: uint64(st.Touches), Origin: origin,
		Reserves: uint64(st.Reserves), Timeouts: uint64(st.Timeouts), Releases: uint64(st.Releases), Buries: uint64(st.Buries), Kicks: uint64(st.Kicks),
		Failure: failure,
	}
}

// listJobs returns a page of the jobs of a tube in one state, in order. A page with
// bodies ends early if the bodies are large.
func (r *request) listJobs(in *admin.ListJobs) (page admin.Jobs, err error) {
	n := in.Limit
	state, err := parseState(in.State, allStates...)
	if err != nil {
		return page, err
	}
	after, err := engine.ParseCursor(in.Cursor)
	if err != nil {
		return page, badCursor()
	}
	if in.Bodies {
		if err := r.permittedOn(peekNamed, "the tube "+r.tube+", for the bodies", r.tube); err != nil {
			return page, err
		}
	}
	if n > shortList {
		end, err := r.beginScan(aPage)
		if err != nil {
			return page, err
		}
		defer end()
	}
	page.Jobs = []admin.Job{}
	w := jobScan{places: []place{{r.tube, state}}, after: after, page: n}
	if in.Bodies {
		w.bodies = largestBody
	}
	shown := 0
	err = r.scan(&w, func(slice []scannedJob) bool {
		for i := range slice {
			page.Jobs = append(page.Jobs, r.shown(&slice[i], in.Bodies, &shown))
			if len(page.Jobs) == n || shown >= largestBody {
				page.Next = slice[i].at.String()
				return false
			}
		}
		return true
	})
	if err == nil && w.missing {
		err = tubes.ErrNone(r.tube)
	}
	return page, err
}

// largestBody is the maximum size of a body that is shown with its job, and the total
// size of bodies after which a page ends.
const largestBody = jobjson.ShownBody

// shownBody returns the body of a job, or nil if the body is too large. It must be called
// in a turn.
func shownBody(e *engine.Engine, st *engine.JobStats) []byte {
	if int64(st.Size) > largestBody {
		return nil
	}
	job, _ := e.Peek(st.ID)
	if body := job.Keep(); body != nil {
		return body
	}
	return []byte{} // not nil, because an empty body is shown
}

func (r *request) getJob(*admin.OfJob) (j admin.Job, err error) {
	var body []byte
	err = r.turn(func(e *engine.Engine, now int64) error {
		st, _ := e.JobStats(now, r.job)
		j = r.jobOf(&st)
		if r.caller.Identity.Meets(peekOfJob, st.Tube) {
			body = shownBody(e, &st)
		}
		return nil
	})
	if body != nil {
		jobjson.SetBody(&j, body)
	}
	return j, err
}

func (r *request) getBody(*admin.OfJob) (body admin.Bytes, err error) {
	err = r.turn(func(e *engine.Engine, _ int64) error {
		job, _ := e.Peek(r.job)
		body = job.Keep()
		return nil
	})
	return body, err
}

func (r *request) putJob(in *admin.PutJob) (made admin.Inserted, err error) {
	body, err := jobjson.BodyOf(in)
	if err != nil {
		return made, err
	}
	if err = r.fits(int64(len(body))); err != nil {
		return made, err
	}
	spec := engine.Spec{Pri: op.Or(in.Priority, jobjson.DefaultPriority), Delay: in.Delay, TTR: op.Or(in.TTR, jobjson.DefaultTTR)}
	err = r.turn(func(e *engine.Engine, now int64) error {
		var o engine.Outcome
		made.ID, o = e.PutInto(now, []byte(r.tube), spec, body)
		return outcomeIn(e, o)
	})
	return made, r.put("job", made.ID, err)
}

func (r *request) deleteJob(*admin.OfJob) (admin.None, error) {
	return r.doJob("deleted: bury it first, which takes it from its worker", &admin.StartTask{Do: "delete"})
}

// changeJob changes a job that no client holds.
func (r *request) changeJob(in *admin.ChangeJob) (none admin.None, err error) {
	a := engine.Alteration{Pri: in.Priority, TTR: in.TTR, Delay: in.Delay}
	if in.Body != nil || in.BodyBase64 != nil {
		body, err := jobjson.BodyOf(&admin.PutJob{Body: in.Body, BodyBase64: in.BodyBase64})
		if err == nil {
			err = r.fits(int64(len(body)))
		}
		if err != nil {
			return none, err
		}
		a.Body = &body
		r.note("bytes", len(body))
	}
	if a == (engine.Alteration{}) {
		return none, badRequest("no change: want priority, delay, ttr or a body")
	}
	const how = "changed in this way: a worker holds it, or it is buried and cannot be delayed"
	return r.onJob(how, func(e *engine.Engine, now int64, st *engine.JobStats) (engine.Outcome, error) {
		if a.Body != nil { // workers receive the new body, so it is checked like the body of a put
			if err := r.permittedOn(putNamed, fmt.Sprintf("the tube of job %d", st.ID), st.Tube); err != nil {
				return engine.OK, err
			}
		}
		return e.AlterJob(now, st.ID, a), nil
	})
}

// fits refuses a body that exceeds max-job-size.
func (r *request) fits(size int64) error {
	if most := r.api.opt.Server.MaxJobSize(); size > int64(most) {
		return problemf(http.StatusRequestEntityTooLarge, "the body is too large: the maximum is %d bytes", most)
	}
	return nil
}

// moveJob moves a job that no client holds to another tube.
func (r *request) moveJob(in *admin.MoveJob) (none admin.None, err error) {
	if err := r.permittedTo(in.To, manageNamed); err != nil {
		return none, err
	}
	return r.doJob("moved to that tube: a worker holds it, or it is already in that tube", &admin.StartTask{Do: "move", To: &in.To})
}

// permittedTo checks the rights on the tube that receives jobs.
func (r *request) permittedTo(tube string, n rights.Need) error {
	if err := checkTube(tube); err != nil {
		return err
	}
	r.note("to", tube)
	return r.permittedOn(n, "the tube "+tube, tube)
}

// copyJob puts a job with the body of another job.
func (r *request) copyJob(in *admin.CopyJob) (made admin.Inserted, err error) {
	if err := r.permittedTo(in.To, putNamed); err != nil {
		return made, err
	}
	err = r.turn(func(e *engine.Engine, now int64) error {
		st, _ := e.JobStats(now, r.job)
		from, _ := e.Peek(r.job)
		spec := engine.Spec{Pri: op.Or(in.Priority, st.Pri), Delay: in.Delay, TTR: op.Or(in.TTR, st.TTR), Again: true}
		var o engine.Outcome
		made.ID, o = e.PutInto(now, []byte(in.To), spec, from.Keep())
		return outcomeIn(e, o)
	})
	return made, r.put("copy", made.ID, err)
}

// put adds the id of the new job to the audit entry, as the attribute as.
func (r *request) put(as string, id uint64, err error) error {
	if err == nil {
		r.note(as, id)
	}
	return err
}

// redriveJob returns a job to its origin, on which the client also needs the right.
func (r *request) redriveJob(*admin.OfJob) (admin.None, error) {
	return r.onJob("redriven: it must be buried or ready, and have an origin", func(e *engine.Engine, now int64, st *engine.JobStats) (engine.Outcome, error) {
		if st.Origin == "" {
			return engine.NotFound, nil
		}
		r.note("to", st.Origin)
		if err := r.permittedOn(manageNamed, fmt.Sprintf("the origin of job %d", st.ID), st.Origin); err != nil {
			return engine.OK, err
		}
		return e.RedriveJob(now, st.ID, ""), nil
	})
}

func (r *request) kickJob(*admin.OfJob) (admin.None, error) {
	return r.doJob("kicked: it must be buried or delayed", &admin.StartTask{Do: "kick"})
}

func (r *request) buryJob(in *admin.BuryJob) (admin.None, error) {
	return r.doJob("buried again", &admin.StartTask{Do: "bury", Priority: in.Priority})
}

func (r *request) releaseJob(in *admin.ReleaseJob) (admin.None, error) {
	return r.doJob("released: no worker holds it", &admin.StartTask{Do: "release", Priority: in.Priority, Delay: &in.Delay})
}

// doJob performs an action of tasks on a single job.
func (r *request) doJob(what string, task *admin.StartTask) (admin.None, error) {
	return r.onJob(what, func(e *engine.Engine, now int64, st *engine.JobStats) (engine.Outcome, error) {
		return doTo(e, now, st, task), nil
	})
}

// onJob performs an action on the job in the path, which must exist. The engine returns
// NotFound if the state of the job does not permit the action.
func (r *request) onJob(what string, do func(e *engine.Engine, now int64, st *engine.JobStats) (engine.Outcome, error)) (none admin.None, err error) {
	return none, r.turn(func(e *engine.Engine, now int64) error {
		st, _ := e.JobStats(now, r.job)
		r.note("tube", st.Tube)
		o, err := do(e, now, &st)
		if err != nil {
			return err
		}
		if o == engine.NotFound {
			return problemf(http.StatusConflict, "job %d is %v and cannot be %s", r.job, st.State, what)
		}
		return outcomeIn(e, o)
	})
}
