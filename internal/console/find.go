package console

import (
	"net/http"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// A findView is the page that finds a job by its number, a tube by its name, a page of
// the console, or the jobs that match a search. The palette shows its choices.
type findView struct {
	Q       string
	Choices []choice // best first
}

type choice struct{ Text, Kind, Link string }

const foundTubes = 8

func findPage(r *request) (*page, error) {
	v := &findView{Q: strings.TrimSpace(r.FormValue("q"))}
	p := newPage("find", "Find", "", v)
	p.Me, p.site = r.meOn(""), r.site
	sure := false // the user certainly means the first choice
	add := func(kind, text, link string) { v.Choices = append(v.Choices, choice{text, kind, link}) }
	if id := strings.TrimPrefix(v.Q, "#"); isNumber(id) {
		add("job", id, r.site.Base+"job/"+id)
		sure = true
	}
	if v.Q != "" {
		if _, err := r.api().GetTube(r.Context(), &admin.OfTube{Tube: v.Q}); err == nil {
			add("tube", v.Q, r.tubeLink(v.Q, ""))
			sure = true
		}
		found, err := r.api().ListTubes(r.Context(), &admin.ListTubes{Q: v.Q, Sort: "name", Limit: foundTubes})
		if err := optional(err); err != nil && !isStatus(err, http.StatusBadRequest) {
			return nil, err
		}
		for _, t := range found.Tubes {
			if t.Name != v.Q {
				add("tube", t.Name, r.tubeLink(t.Name, ""))
			}
		}
	}
	for _, name := range sections {
		if strings.HasPrefix(name, strings.ToLower(v.Q)) && p.Opens(name) {
			add("page", sentenceCase(name), r.site.Base+strings.TrimPrefix(name, "overview"))
		}
	}
	if v.Q != "" && p.Opens("search") {
		add("search", v.Q, withQuery(r.site.Base+"search", "q", v.Q))
	}
	if sure = sure || len(v.Choices) == 1 || r.FormValue("go") == "first"; sure && v.Q != "" && len(v.Choices) > 0 && r.FormValue("list") == "" {
		return nil, redirect(v.Choices[0].Link)
	}
	return p, nil
}

// redirect is the error of a page that redirects to another page.
type redirect string

func (to redirect) Error() string { return "the page is at " + string(to) }
