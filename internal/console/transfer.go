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

// importPage shows the form for a file of jobs.
func importPage(r *request) (*page, error) {
	tube := r.PathValue("tube")
	if err := r.mayDo(&putting, tube); err != nil {
		return nil, err
	}
	p := newPage("import", "Import jobs", "tubes", tube)
	return p, nil
}

// exportFile returns the jobs of a tube as a file.
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
			panic(http.ErrAbortHandler) // so that the browser detects the incomplete file
		}
	}), err
}

// filePage returns a page that is downloaded as a file.
func filePage(kind, name string, write func(w io.Writer)) *page {
	return &page{file: func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
		write(w)
	}}
}

// fileName returns the name of a file with the jobs of a tube in a state. The name
// contains only safe characters.
func fileName(tube, state string) string {
	name := strings.Trim(regexp.MustCompile(`[^A-Za-z0-9._-]+`).ReplaceAllString(tube, "_"), ".")
	return strings.Trim(cmp.Or(name, "jobs")+"-"+state, "-")
}

// takeFile puts the jobs of an uploaded file.
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

// fileOf returns the uploaded file of a form.
func fileOf(h *http.Request) (io.Reader, error) {
	parts, err := h.MultipartReader()
	if err != nil {
		return nil, problemf(http.StatusBadRequest, "This form cannot be read.")
	}
	for {
		part, err := parts.NextPart()
		if err != nil {
			return nil, problemf(http.StatusBadRequest, "Choose a file.")
		}
		if part.FormName() == "file" && part.FileName() != "" {
			return part, nil
		}
	}
}
