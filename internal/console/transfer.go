package console

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// An importView is the page that takes a file of jobs.
type importView struct{ Tube string }

func importPage(r *request) (*page, error) {
	tube := r.PathValue("tube")
	p := newPage("import", "Import jobs", "tubes", importView{tube})
	p.NoLive, p.Me = true, r.meOn(tube)
	p.Curl = r.curl("POST", tubePath(tube, "/import"), nil) + " -H 'Content-Type: application/x-ndjson' --data-binary @jobs.ndjson"
	return p, nil
}

// export passes on what the API exports of a tube, as a file.
func (c *Console) export(w http.ResponseWriter, h *http.Request) {
	r, tube := c.newRequest(h), h.PathValue("tube")
	q := url.Values{}
	for _, name := range append([]string{"state"}, searchFields...) {
		if h.URL.Query().Get(name) != "" {
			q.Set(name, h.URL.Query().Get(name))
		}
	}
	path := tubePath(tube, "/export")
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	call, err := newCall(h, "GET", path, nil)
	if err == nil {
		out := &download{ResponseWriter: w}
		if r.site.api.ServeHTTP(out, call); out.kept == nil {
			return
		}
		err = out.kept.problem()
	}
	c.show(func(*request) (*page, error) { return nil, err })(w, h)
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
		n, err := r.importFrom(tube, &patientReader{file, http.NewResponseController(w)})
		one := note{Text: fmt.Sprintf("%s put into %s.", plural(n, "job was", "jobs were"), tube)}
		if p, ok := err.(*problem); ok {
			one = note{Text: fmt.Sprintf("%s put into %s. %s", plural(p.Done, "job was", "jobs were"), tube, sentence(p.Detail)), Bad: true}
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
		return nil, &problem{Status: http.StatusBadRequest, Detail: "The form cannot be read."}
	}
	for {
		part, err := parts.NextPart()
		if err != nil {
			return nil, &problem{Status: http.StatusBadRequest, Detail: "There is no file: choose one."}
		}
		if part.FormName() == "file" && part.FileName() != "" {
			return part, nil
		}
	}
}

// importFrom hands a stream of jobs to the API, and returns how many were put.
func (r *request) importFrom(tube string, lines io.Reader) (uint64, error) {
	call, err := newCall(r.Request, "POST", tubePath(tube, "/import"), lines)
	if err != nil {
		return 0, err
	}
	call.Header.Set("Content-Type", "application/x-ndjson")
	var done struct{ Imported uint64 }
	a, err := r.site.ask(call, &done)
	if err == nil {
		err = a.read()
	}
	return done.Imported, err
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
