package console

import (
	"io"
	"mime"
	"net/http"
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
	return filePage("application/x-ndjson", strings.TrimSuffix(tube+"-"+state, "-")+".ndjson", func(w io.Writer) {
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
		w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
		write(w)
	}}
}
