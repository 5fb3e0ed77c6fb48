package api

import (
	"net/http"

	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/jobjson"
	"github.com/beanpole-mq/beanpole/internal/rights"
)

// A Job is what there is to tell of a job.
type Job struct {
	jobjson.Job

	taken []byte // the body, within a turn; nil: none
}

// Jobs is a page of jobs.
type Jobs struct {
	Jobs []Job  `json:"jobs"`
	Next string `json:"next,omitempty"`
}

func jobOf(st *engine.JobStats) Job {
	return Job{Job: jobjson.Job{
		ID: st.ID, Tube: st.Tube, State: st.State.String(), Priority: st.Pri, Size: int64(st.Size),
		Age: st.Age, Delay: st.Delay, TTR: st.TTR, TimeLeft: st.TimeLeft, ReservedBy: st.Holder,
		Reserves: uint64(st.Reserves), Timeouts: uint64(st.Timeouts), Releases: uint64(st.Releases), Buries: uint64(st.Buries), Kicks: uint64(st.Kicks),
	}}
}

// listJobs tells of the jobs of a tube in one state, in their order. A page with bodies
// ends early when they are large.
func listJobs(r *request) (reply, error) {
	n, err := r.limit(maxLimit)
	if err != nil {
		return reply{}, err
	}
	state, err := parseState(r.query.Get("state"), allStates...)
	if err != nil {
		return reply{}, err
	}
	after, err := engine.ParseCursor(r.query.Get("cursor"))
	if err != nil {
		return reply{}, badCursor()
	}
	withBodies, err := r.asksForBodies()
	if err != nil {
		return reply{}, err
	}
	if n > shortList {
		end, err := r.beginWalk(aPage)
		if err != nil {
			return reply{}, err
		}
		defer end()
	}
	page := Jobs{Jobs: []Job{}}
	var search engine.PageSearch
	var next engine.Cursor
	size, begun, full := 0, false, false
	err = r.turns(func(e *engine.Engine, now int64) (more bool, err error) {
		if !begun {
			begun = true
			var o engine.Outcome
			if search, o = e.BeginPage([]byte(r.tube), state, after, n); o != engine.OK {
				return false, r.noTube()
			}
		}
		more = e.ContinuePage(now, &search, func(st engine.JobStats, at engine.Cursor) {
			if full {
				return
			}
			j := jobOf(&st)
			if withBodies {
				size += j.take(e)
			}
			page.Jobs = append(page.Jobs, j)
			next = at
			full = len(page.Jobs) == n || size >= largestBody
		})
		return more && !full, nil
	})
	if full {
		page.Next = next.String()
	}
	for i := range page.Jobs {
		page.Jobs[i].showBody()
	}
	return reply{body: page}, err
}

// asksForBodies reads the parameter bodies, and asks for the right to see them.
func (r *request) asksForBodies() (bool, error) {
	asked, err := r.isTrue("bodies")
	if asked {
		return true, r.permittedOn(peekNamed, "the tube "+r.tube+", for the bodies", r.tube)
	}
	return asked, err
}

// largestBody is how long a body is at most that is shown with its job, in bytes, and how
// much of bodies is enough for a page.
const largestBody = 1 << 20

// take takes the body of a job within a turn, if it can be shown, and returns its size.
func (j *Job) take(e *engine.Engine) int {
	if j.Size > largestBody {
		return 0
	}
	job, _ := e.Peek(j.ID)
	if j.taken = job.Keep(); j.taken == nil {
		j.taken = []byte{} // an empty one is shown, too
	}
	return len(j.taken)
}

// showBody makes text of the body that was taken, if any was.
func (j *Job) showBody() {
	if j.taken != nil {
		j.SetBody(j.taken)
	}
}

func getJob(r *request) (reply, error) {
	var j Job
	err := r.turn(func(e *engine.Engine, now int64) error {
		st, _ := e.JobStats(now, r.job)
		j = jobOf(&st)
		if r.who.Meets(peekOfJob, st.Tube) {
			j.take(e)
		}
		return nil
	})
	j.showBody()
	return reply{body: j}, err
}

func getBody(r *request) (reply, error) {
	var body []byte
	err := r.turn(func(e *engine.Engine, _ int64) error {
		job, _ := e.Peek(r.job)
		body = job.Keep()
		return nil
	})
	return reply{raw: body, isRaw: true}, err
}

// jobToPut reads a job that is to be put.
func (r *request) jobToPut() (spec engine.Spec, body []byte, err error) {
	var in struct {
		Body       *jobjson.Text `json:"body"`
		BodyBase64 *[]byte       `json:"body_base64"`
		Priority   *uint32       `json:"priority"`
		Delay      uint32        `json:"delay"`
		TTR        *uint32       `json:"ttr"`
	}
	if err := r.decode(&in, false); err != nil {
		return spec, nil, err
	}
	spec = engine.Spec{Pri: valueOr(in.Priority, jobjson.DefaultPriority), Delay: in.Delay, TTR: valueOr(in.TTR, jobjson.DefaultTTR)}
	switch {
	case (in.Body == nil) == (in.BodyBase64 == nil):
		return spec, nil, problemf(http.StatusBadRequest, "want one of body and body_base64")
	case in.Body != nil:
		return spec, []byte(*in.Body), nil
	}
	return spec, *in.BodyBase64, nil
}

// checkPut refuses a job before it is read, if the server drains or limits will. As anywhere, a job is taken to have
// half as many bytes as its request at least.
func (r *request) checkPut() error {
	return r.turn(func(e *engine.Engine, _ int64) error {
		if _, most := e.LimitedMemory(); most > 0 { // for a request that does not tell its length
			r.http.Body = http.MaxBytesReader(nil, r.http.Body, smallBody+jsonPerByte*most)
		}
		least := max(0, r.http.ContentLength-smallBody) / jsonPerByte
		return outcomeProblem(e.CheckPut(r.tube, uint32(least)))
	})
}

func putJob(r *request) (reply, error) {
	if err := r.checkPut(); err != nil {
		return reply{}, err
	}
	spec, body, err := r.jobToPut()
	if err != nil {
		return reply{}, err
	}
	if most := r.api.opt.Server.MaxJobSize(); len(body) > most {
		return reply{}, problemf(http.StatusRequestEntityTooLarge, "the body of a job has %d bytes at most", most)
	}
	var id uint64
	err = r.turn(func(e *engine.Engine, now int64) error {
		var o engine.Outcome
		id, o = e.PutInto(now, []byte(r.tube), spec, body)
		return outcomeProblem(o)
	})
	return r.put("job", id, err)
}

type inserted struct {
	ID uint64 `json:"id"`
}

func valueOr(p *uint32, other uint32) uint32 {
	if p != nil {
		return *p
	}
	return other
}

func deleteJob(r *request) (reply, error) {
	return r.onJob("deleted: bury it first, which takes it from whoever holds it", func(e *engine.Engine, _ int64, st *engine.JobStats) engine.Outcome {
		return e.DeleteJob(st.ID)
	})
}

var errNothingToChange = problemf(http.StatusBadRequest, "want priority, delay or ttr: nothing is to change")

// changeJob changes a job that nobody holds.
func changeJob(r *request) (reply, error) {
	var in struct {
		Priority *uint32 `json:"priority"`
		Delay    *uint32 `json:"delay"`
		TTR      *uint32 `json:"ttr"`
	}
	if err := r.decode(&in, false); err != nil {
		return reply{}, err
	}
	if in.Priority == nil && in.Delay == nil && in.TTR == nil {
		return reply{}, errNothingToChange
	}
	return r.onJob("changed so: a worker holds it, or it is buried and cannot be delayed", func(e *engine.Engine, now int64, st *engine.JobStats) engine.Outcome {
		return e.AlterJob(now, st.ID, engine.Alteration{Pri: in.Priority, TTR: in.TTR, Delay: in.Delay})
	})
}

// moveJob moves a job that nobody holds to another tube.
func moveJob(r *request) (reply, error) {
	var in struct {
		To string `json:"to"`
	}
	if err := r.decode(&in, false); err != nil {
		return reply{}, err
	}
	if err := r.permittedTo(in.To, manageNamed); err != nil {
		return reply{}, err
	}
	return r.onJob("moved there: a worker holds it, or it is there already", func(e *engine.Engine, now int64, st *engine.JobStats) engine.Outcome {
		return e.MoveJob(now, st.ID, in.To)
	})
}

// permittedTo asks for rights on the tube to which something goes.
func (r *request) permittedTo(tube string, n rights.Need) error {
	if tube == "" {
		return problemf(http.StatusBadRequest, "to: want the name of a tube")
	}
	if err := checkTube(tube); err != nil {
		return err
	}
	r.note("to", tube)
	return r.permittedOn(n, "the tube "+tube, tube)
}

// A copyRequest is what a copy of a job is to be.
type copyRequest struct {
	To       string  `json:"to"`
	Priority *uint32 `json:"priority"`
	Delay    uint32  `json:"delay"`
	TTR      *uint32 `json:"ttr"`
}

// copyOfJob reads what a copy is to be.
func (r *request) copyOfJob() (in copyRequest, err error) {
	if err := r.decode(&in, false); err != nil {
		return in, err
	}
	return in, r.permittedTo(in.To, putNamed)
}

// copyJob puts a job with the body of another one into a tube.
func copyJob(r *request) (reply, error) {
	in, err := r.copyOfJob()
	if err != nil {
		return reply{}, err
	}
	var id uint64
	err = r.turn(func(e *engine.Engine, now int64) error {
		st, _ := e.JobStats(now, r.job)
		from, _ := e.Peek(r.job)
		spec := engine.Spec{Pri: valueOr(in.Priority, st.Pri), Delay: in.Delay, TTR: valueOr(in.TTR, st.TTR)}
		var o engine.Outcome
		id, o = e.PutInto(now, []byte(in.To), spec, from.Keep())
		return outcomeProblem(o)
	})
	return r.put("copy", id, err)
}

// put answers that a job was put, which the audit names so.
func (r *request) put(as string, id uint64, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	r.note(as, id)
	return reply{status: http.StatusCreated, body: inserted{id}, location: Prefix + "/jobs/" + formatID(id)}, nil
}

func kickJob(r *request) (reply, error) {
	if err := r.decode(&struct{}{}, true); err != nil {
		return reply{}, err
	}
	return r.onJob("kicked: it must be buried or delayed", func(e *engine.Engine, now int64, st *engine.JobStats) engine.Outcome {
		return e.KickJob(now, st.ID)
	})
}

func buryJob(r *request) (reply, error) {
	var in struct {
		Priority *uint32 `json:"priority"`
	}
	if err := r.decode(&in, true); err != nil {
		return reply{}, err
	}
	return r.onJob("buried again", func(e *engine.Engine, _ int64, st *engine.JobStats) engine.Outcome {
		return e.BuryJob(st.ID, valueOr(in.Priority, st.Pri))
	})
}

func releaseJob(r *request) (reply, error) {
	var in struct {
		Priority *uint32 `json:"priority"`
		Delay    uint32  `json:"delay"`
	}
	if err := r.decode(&in, true); err != nil {
		return reply{}, err
	}
	return r.onJob("released: nobody holds it", func(e *engine.Engine, now int64, st *engine.JobStats) engine.Outcome {
		return e.ReleaseJob(now, st.ID, valueOr(in.Priority, st.Pri), in.Delay)
	})
}

// onJob does something with a job, which is there. What may not be done in its state is
// NotFound to the engine.
func (r *request) onJob(what string, do func(e *engine.Engine, now int64, st *engine.JobStats) engine.Outcome) (reply, error) {
	return reply{status: http.StatusNoContent}, r.turn(func(e *engine.Engine, now int64) error {
		st, _ := e.JobStats(now, r.job)
		r.note("tube", st.Tube)
		o := do(e, now, &st)
		if o == engine.NotFound {
			return problemf(http.StatusConflict, "job %d is %v and cannot be %s", r.job, st.State, what)
		}
		return outcomeProblem(o)
	})
}
