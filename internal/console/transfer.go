package console

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// importPage takes a file of jobs.
func importPage(r *request) (*page, error) {
	tube := r.PathValue("tube")
	if err := r.mayDo(&putting, tube); err != nil {
		return nil, err
	}
	p := newPage("import", "Import jobs", "tubes", tube)
	p.Curl = r.curl("POST /tubes/{tube}/import", &admin.OfTube{Tube: tube}, " -H 'Content-Type: application/x-ndjson' --data-binary @jobs.ndjson")
	return p, nil
}

// exportFile passes on what the API exports of a tube, as a file.
func exportFile(r *request) (*page, error) {
	tube, state := r.PathValue("tube"), r.FormValue("state")
	in := &admin.ExportTube{OfTube: admin.OfTube{Tube: tube}, Search: admin.Search{State: state}}
	if q := r.FormValue("q"); q != "" {
		in.Q = &q
	}
	jobs, err := r.api().ExportTube(r.Context(), in)
	return filePage("application/x-ndjson", fileName(tube, state)+".ndjson", func(w io.Writer) {
		defer jobs.Close()
		if jobs.Write(w) != nil {
			panic(http.ErrAbortHandler) // so that the browser sees that it is not whole
		}
	}), err
}

// filePage is a page that is a file with a name: a browser shows nothing of it.
func filePage(kind, name string, write func(w io.Writer)) *page {
	return &page{file: func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
		write(w)
	}}
}

// fileName is what a file is called that has the jobs of a tube in a state: with nothing that means something to a system.
func fileName(tube, state string) string {
	name := strings.Trim(regexp.MustCompile(`[^A-Za-z0-9._-]+`).ReplaceAllString(tube, "_"), ".")
	return strings.Trim(cmp.Or(name, "jobs")+"-"+state, "-")
}

// takeFile puts the jobs of a file that a form brings.
func takeFile(r *request) (*page, error) {
	tube := r.PathValue("tube")
	file, err := fileOf(r.Request)
	if err != nil {
		return nil, err
	}
	in := &admin.ImportTube{OfTube: admin.OfTube{Tube: tube}, ImportAll: admin.ImportAll{Lines: file}}
	done, err := r.api().ImportTube(r.Context(), in)
	one := note{}
	if p, ok := errors.AsType[*admin.Problem](err); ok {
		if p.Done != nil {
			done.Imported = *p.Done
		}
		one = note{Text: " " + sentence(p.Detail), Bad: true}
	} else if err != nil {
		return nil, err
	}
	one.Text = fmt.Sprintf("%s put into %s.", plural(done.Imported, "job was", "jobs were"), tube) + one.Text
	return r.noting(one, r.tubeLink(tube, ""))
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
