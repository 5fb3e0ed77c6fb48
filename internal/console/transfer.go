package console

import (
	"cmp"
	"fmt"
	"github.com/beanpole-mq/beanpole/client/admin"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// An importView is the page that takes a file of jobs.
type importView struct{ Tube string }

func importPage(r *request) (*page, error) {
	tube := r.PathValue("tube")
	if err := r.mayDo(&putting, tube); err != nil {
		return nil, err
	}
	p := newPage("import", "Import jobs", "tubes", importView{tube})
	p.NoLive, p.Me = true, r.meOn(tube)
	p.Curl = r.curl("POST /tubes/{tube}/import", &admin.OfTube{Tube: tube}) + " -H 'Content-Type: application/x-ndjson' --data-binary @jobs.ndjson"
	return p, nil
}

// export passes on what the API exports of a tube, as a file.
func (c *Console) export(w http.ResponseWriter, h *http.Request) {
	r, tube := c.newRequest(h), h.PathValue("tube")
	var jobs *admin.Stream
	_, err := r.page(func(r *request) (*page, error) {
		in := &admin.ExportTube{OfTube: admin.OfTube{Tube: tube}, Search: admin.Search{State: h.URL.Query().Get("state")}}
		if q := h.URL.Query().Get("q"); q != "" {
			in.Q = &q
		}
		var err error
		jobs, err = r.api().ExportTube(r.Context(), in)
		return nil, err
	})
	if err != nil {
		c.show(func(*request) (*page, error) { return nil, err })(w, h)
		return
	}
	defer jobs.Close()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="`+fileName(tube, h.URL.Query().Get("state"))+`.ndjson"`)
	if jobs.Write(w) != nil {
		panic(http.ErrAbortHandler) // so that the browser sees that it is not whole
	}
}

// fileName is what a file is called that has the jobs of a tube in a state: with nothing that means something to a system.
func fileName(tube, state string) string {
	name := strings.Trim(regexp.MustCompile(`[^A-Za-z0-9._-]+`).ReplaceAllString(tube, "_"), ".")
	return strings.Trim(cmp.Or(name, "jobs")+"-"+state, "-")
}

// takeFile puts the jobs of a file that a form brings.
func (c *Console) takeFile(w http.ResponseWriter, h *http.Request) {
	var next string
	r := c.newRequest(h)
	tube := r.PathValue("tube")
	_, err := r.page(func(r *request) (*page, error) {
		if r.isReadOnly() {
			return nil, errReadOnly
		}
		file, err := fileOf(h)
		if err != nil {
			return nil, err
		}
		in := &admin.ImportTube{OfTube: admin.OfTube{Tube: tube}, ImportAll: admin.ImportAll{Lines: &patientReader{file, http.NewResponseController(w)}}}
		done, err := r.api().ImportTube(r.Context(), in)
		one := note{Text: fmt.Sprintf("%s put into %s.", plural(done.Imported, "job was", "jobs were"), tube)}
		if p, ok := err.(*admin.Problem); ok {
			before := uint64(0)
			if p.Done != nil {
				before = *p.Done
			}
			one = note{Text: fmt.Sprintf("%s put into %s. %s", plural(before, "job was", "jobs were"), tube, sentence(p.Detail)), Bad: true}
		} else if err != nil {
			return nil, err
		}
		next = withNote(r.tubeLink(tube, ""), c.notes.add(one))
		return nil, nil
	})
	if err != nil {
		c.show(func(*request) (*page, error) { return nil, err })(w, h)
		return
	}
	http.Redirect(w, h, next, http.StatusSeeOther)
}

// fileOf returns the file of a form.
func fileOf(h *http.Request) (io.Reader, error) {
	parts, err := h.MultipartReader()
	if err != nil {
		return nil, problemf(http.StatusBadRequest, "The form cannot be read.")
	}
	for {
		part, err := parts.NextPart()
		if err != nil {
			return nil, problemf(http.StatusBadRequest, "There is no file: choose one.")
		}
		if part.FormName() == "file" && part.FileName() != "" {
			return part, nil
		}
	}
}

// A patientReader lets each part of a file come in time, however large the whole is.
type patientReader struct {
	io.Reader
	control *http.ResponseController
}

const partPatience = 30 * time.Second

// Read implements io.Reader.
func (p *patientReader) Read(b []byte) (int, error) {
	p.control.SetReadDeadline(time.Now().Add(partPatience)) // a recorder of a test has none
	return p.Reader.Read(b)
}
