package console

import (
	"cmp"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
)

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
