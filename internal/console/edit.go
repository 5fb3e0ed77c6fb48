package console

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/decode"
)

// An editView is the page that changes the body of a job.
type editView struct {
	admin.Job
	Text, As string // the text in the form, and its format
	Was      string // hash of the body for which the form was created
	Problem  string
}

func editPage(r *request) (*page, error) {
	v := &editView{}
	var err error
	if v.Job, err = r.job(r.PathValue("job")); err != nil {
		return nil, err
	}
	p := newPage("edit", fmt.Sprintf("Edit job %d", v.ID), "tubes", v)
	p.Me = r.meOn(v.Tube)
	if r.isReadOnly() {
		return nil, errReadOnly
	}
	if err := missing(p.Me.Tube, v.Tube, "manage", "put"); err != nil {
		return nil, err
	}
	body := v.Bytes()
	switch {
	case v.State == "reserved":
		return nil, problemf(http.StatusConflict, "A worker holds job %d. Release or bury the job to edit it.", v.ID)
	case body == nil:
		return nil, problemf(http.StatusForbidden, "You cannot edit the body of this job, because you cannot see it here.")
	}
	var ok bool
	if v.Text, v.As, ok = decode.Edit(body); !ok {
		v.Text, v.As = base64.StdEncoding.EncodeToString(body), "base64"
	}
	sum := sha256.Sum256(body)
	v.Was = base64.RawURLEncoding.EncodeToString(sum[:])
	return p, nil
}

// edit changes the body of a job to the text of a form.
func edit(r *request) (*page, error) {
	p, err := editPage(r)
	if err != nil {
		return nil, err
	}
	v, form := p.Data.(*editView), r.PostForm
	body, err := v.edited(form)
	if err == nil {
		var changed admin.Job
		changed.SetBody(body)
		err = r.api().ChangeJob(r.Context(), &admin.ChangeJob{OfJob: admin.OfJob{Job: v.ID}, Body: changed.Body, BodyBase64: changed.BodyBase64})
	}
	if err != nil {
		v.Problem, v.Text, p.status = inWords(err), form.Get("text"), http.StatusUnprocessableEntity
		return p, nil
	}
	one := note{Text: fmt.Sprintf("Job %d has a new body of %s.", v.ID, byteSize(int64(len(body)))), Job: v.ID}
	if form.Get("then") == "kick" {
		if err := r.api().KickJob(r.Context(), &admin.OfJob{Job: v.ID}); err != nil {
			one.Text, one.Bad = one.Text+" The kick failed: "+inWords(err), true
		} else {
			one.Text += " It is ready."
		}
	}
	return r.noting(one, fmt.Sprintf("%sjob/%d", r.site.Base, v.ID))
}

// edited returns the new body.
func (v *editView) edited(form url.Values) ([]byte, error) {
	text := strings.ReplaceAll(form.Get("text"), "\r\n", "\n") // browsers end lines with CR LF
	if form.Get("was") != v.Was {
		return nil, fmt.Errorf("another user has changed the body; to replace that body with your text below, save again")
	}
	if v.As == "base64" {
		body, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("this is not base64: %w", err)
		}
		return body, nil
	}
	return decode.Pack(v.Bytes(), text)
}
