package console

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/decode"
)

// A jobView is the page of a job.
type jobView struct {
	admin.Job
	Gone    bool
	HasBody bool
	Kind    string
	Views   []decode.View // representations of the body
	Shown   decode.View
}

func jobPage(r *request) (*page, error) {
	id := r.PathValue("job")
	v := &jobView{}
	var err error
	v.Job, err = r.job(id)
	title := "Job " + id
	if isStatus(err, http.StatusNotFound) {
		v.Gone = true
		p := newPage("job", title, "tubes", v)
		p.status, p.shape = http.StatusNotFound, []string{"gone"}
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	body := v.Bytes()
	if v.HasBody = body != nil; v.HasBody && !r.live { // the body is not a live value
		v.Kind, _ = decode.Describe(body)
		v.Views = decode.Views(body)
		v.Shown = v.Views[max(0, slices.IndexFunc(v.Views, func(one decode.View) bool { return one.Name == r.FormValue("as") }))]
	}
	p := newPage("job", title, "tubes", v)
	p.Me = r.meOn(v.Tube)
	still := v.Job // without the fields that change with time
	still.Body, still.BodyBase64, still.Age, still.TimeLeft, still.Failure = nil, nil, 0, 0, nil
	p.shape = append(p.shape, fmt.Sprintf("%+v %+v", still, cmp.Or(v.Failure, new(admin.Failure))))
	return p, nil
}

// job returns the job with an id, which is text of a user.
func (r *request) job(id string) (j admin.Job, err error) {
	in, err := bindPath[admin.OfJob](func(string) string { return id })
	if err != nil {
		return j, err
	}
	return r.api().GetJob(r.Context(), in)
}

// bodyFile returns the body of a job as a file, byte for byte.
func bodyFile(r *request) (*page, error) {
	in, err := bindPath[admin.OfJob](r.PathValue)
	if err != nil {
		return nil, err
	}
	body, err := r.api().GetBody(r.Context(), in)
	return filePage("application/octet-stream", fmt.Sprintf("job-%d", in.Job), func(w io.Writer) { w.Write(body) }), err
}
