package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
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
	Text, As string // what is edited, and what that is
	Was      string // which body that was: the form is about no other
	Problem  string
	Most     int // bytes that a body may have
}

// undoBytes is how large a body is at most that a note keeps, to bring it back.
const undoBytes = 64 << 10

func editPage(r *request) (*page, error) {
	v := &editView{}
	var err error
	if v.Job, err = r.job(r.PathValue("job")); err != nil {
		return nil, err
	}
	body := v.Bytes()
	switch {
	case v.State == "reserved":
		return nil, problemf(http.StatusConflict, "A worker holds job %d: its body can be changed when it is released or buried.", v.ID)
	case body == nil:
		return nil, problemf(http.StatusForbidden, "The body of this job cannot be shown here, so it cannot be edited here.")
	}
	var ok bool
	if v.Text, v.As, ok = decode.Edit(body); !ok {
		v.Text, v.As = base64.StdEncoding.EncodeToString(body), "base64"
	}
	sum := sha256.Sum256(body)
	v.Was = base64.RawURLEncoding.EncodeToString(sum[:])
	p := newPage("edit", fmt.Sprintf("Edit job %d", v.ID), "tubes", v)
	p.Me = r.meOn(v.Tube)
	if st, err := r.api().GetStats(r.Context()); err == nil {
		v.Most, p.Server = st.MaxJobSize, &st
	}
	return p, nil
}

// edit changes the body of a job as a form has it, or back to what a note has kept.
func edit(r *request) (*page, error) {
	p, err := editPage(r)
	if err != nil {
		return nil, err
	}
	v := p.Data.(*editView)
	if r.PostForm.Get("then") == "format" {
		v.Was = r.PostForm.Get("was")
		v.Text, v.Problem = formatted(r.PostForm.Get("text"))
		return p, nil
	}
	before := v.Bytes()
	body, err := v.edited(r.console, r.PostForm, before)
	if err == nil {
		err = r.setBody(v.ID, body)
	}
	if err != nil {
		v.Problem, p.status = sentence(err.Error()), http.StatusUnprocessableEntity
		if r.PostForm.Has("text") {
			v.Text = r.PostForm.Get("text")
		}
		return p, nil
	}
	one := note{Text: fmt.Sprintf("The body of job %d was changed, and has %s now.", v.ID, byteSize(int64(len(body)))), Job: v.ID}
	if len(before) <= undoBytes {
		one.before = before
	}
	if r.PostForm.Get("then") == "kick" {
		if err := r.api().KickJob(r.Context(), &admin.OfJob{Job: v.ID}); err != nil {
			one.Text, one.Bad = one.Text+" It was not kicked: "+err.Error(), true
		} else {
			one.Text, one.before = one.Text+" It is ready.", nil // a worker may have it
		}
	}
	return r.noting(one, fmt.Sprintf("%sjob/%d", r.site.Base, v.ID))
}

// edited returns the body that a form asks for.
func (v *editView) edited(c *Console, form url.Values, before []byte) ([]byte, error) {
	if word := form.Get("undo"); word != "" {
		if one := c.notes.take(word); one != nil && one.Job == v.ID && one.before != nil {
			return one.before, nil
		}
		return nil, fmt.Errorf("the body before is not known any more")
	}
	text := strings.ReplaceAll(form.Get("text"), "\r\n", "\n") // a browser sends each line of a field with both
	if form.Get("was") != v.Was {
		return nil, fmt.Errorf("the body was changed by somebody else meanwhile; what you have typed is below, and replaces it when you save again")
	}
	if v.As == "base64" {
		body, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("this is no base64: %w", err)
		}
		return body, nil
	}
	return decode.Pack(before, text)
}

// formatted returns JSON with indents, numbers as they are; or the text as it is, and why it is no JSON.
func formatted(text string) (out, problem string) {
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(text), "", "  "); err != nil {
		return text, sentence("this is no JSON: " + err.Error())
	}
	return indented.String(), ""
}

// setBody changes the body of a job.
func (r *request) setBody(id uint64, body []byte) error {
	var j admin.Job
	j.SetBody(body)
	return r.api().ChangeJob(r.Context(), &admin.ChangeJob{OfJob: admin.OfJob{Job: id}, Body: j.Body, BodyBase64: j.BodyBase64})
}
