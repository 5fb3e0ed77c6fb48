package console

import (
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// A findView is the page that leads to a job by its number, to a tube by its name, to a page, or to a search; the palette shows its choices.
type findView struct {
	Q       string
	Choices []choice
}

type choice struct{ Text, Kind, Link string }

const foundTubes = 8

func findPage(r *request) (*page, error) {
	v := &findView{Q: strings.TrimSpace(r.FormValue("q"))}
	p := newPage("find", "Find", "", v)
	p.Me = r.meOn("")
	sure := "" // where what was typed leads without a choice
	add := func(kind, text, link string) { v.Choices = append(v.Choices, choice{text, kind, link}) }
	if id := strings.TrimPrefix(v.Q, "#"); isNumber(id) {
		sure = r.site.Base + "job/" + id
		add("job", id, sure)
	}
	if v.Q != "" {
		found, err := r.api().ListTubes(r.Context(), &admin.ListTubes{Q: v.Q, Sort: "name", Limit: foundTubes})
		if err := optional(err); err != nil {
			return nil, err
		}
		for _, t := range found.Tubes {
			link := r.tubeLink(t.Name, "")
			if add("tube", t.Name, link); t.Name == v.Q && sure == "" {
				sure = link
			}
		}
	}
	for _, name := range []string{"Overview", "Tubes", "Connections", "Activity", "Server"} {
		if path := strings.ToLower(name); strings.HasPrefix(path, strings.ToLower(v.Q)) {
			add("page", name, r.site.Base+strings.TrimPrefix(path, "overview"))
		}
	}
	if v.Q != "" && !r.site.Plain() && slices.Contains(p.Me.Anywhere, "peek") {
		add("in bodies", v.Q, withQuery(r.site.Base+"search", "q", v.Q))
	}
	if sure != "" && r.FormValue("list") == "" {
		return nil, elsewhere(sure) // there is no choice to make
	}
	return p, nil
}

// elsewhere is the error of a page that sends who asks for it to another one.
type elsewhere string

func (to elsewhere) Error() string { return "the page is at " + string(to) }
