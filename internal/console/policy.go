package console

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// A policyView is the page of a tube's policy, with a form for the settings of a pattern.
type policyView struct {
	Tube    string
	Pattern string   // pattern of the form
	Others  []string // patterns that match the tube and have settings
	Apart   bool     // whether the pattern does not match the tube
	May     bool     // whether the user has the manage right on the tube
	Rows    []policyRow
	Problem string // reason why the form was rejected
}

// A policyRow is a setting.
type policyRow struct {
	admin.SettingInForce
	Was     string // the value for the pattern when the form was created
	Now     string // the value in the form
	Problem string // reason why the value is invalid
}

// policyPage shows the form for the pattern in the URL or in the form. The default
// pattern is the tube.
func policyPage(r *request) (*page, error) {
	tube := admin.OfTube{Tube: r.PathValue("tube")}
	v := &policyView{Tube: tube.Tube, Pattern: cmp.Or(strings.TrimSpace(r.FormValue("pattern")), tube.Tube)}
	inForce, err := r.api().ExplainPolicy(r.Context(), &tube)
	if err != nil {
		return nil, err
	}
	all, err := r.api().ListPolicies(r.Context())
	if err != nil {
		return nil, err
	}
	matches := func(pattern string) bool {
		p, err := access.NewPattern([]string{pattern})
		return err == nil && p.Matches(v.Tube)
	}
	v.Apart = !matches(v.Pattern)
	var set map[string]string
	for _, p := range all.Policies {
		switch {
		case p.Source != "runtime":
		case p.Pattern == v.Pattern:
			set = p.Settings
		case matches(p.Pattern):
			v.Others = append(v.Others, p.Pattern)
		}
	}
	for _, s := range inForce.Settings {
		v.Rows = append(v.Rows, policyRow{s, set[s.Name], set[s.Name], ""})
	}
	p := newPage("policy", "Policy of "+tube.Tube, "tubes", v)
	v.May = slices.Contains(r.meOn(v.Tube).Tube, "manage") && !r.isReadOnly()
	return p, nil
}

// A policiesView is the page of all policies and limits.
type policiesView struct {
	Policies []admin.Policy
	Limits   []admin.Setting // settings that limit clients and jobs; nil if the user cannot see them
	Tables   string          // [[limit]] tables of the configuration file
}

func policiesPage(r *request) (*page, error) {
	all, err := r.api().ListPolicies(r.Context())
	if err != nil {
		return nil, err
	}
	v := &policiesView{Policies: all.Policies}
	facts, err := r.api().GetServer(r.Context())
	if err := optional(err); err != nil {
		return nil, err
	}
	for _, s := range facts.Settings {
		if strings.HasPrefix(s.Name, "max-") {
			v.Limits = append(v.Limits, s)
		}
	}
	for i, table := range strings.Split("\n"+facts.Tables, "\n[[") {
		if i > 0 && strings.HasPrefix(table, "limit]]") {
			v.Tables += "[[" + strings.TrimSpace(table) + "\n"
		}
	}
	p := newPage("policies", "Policies and limits", "server", v)
	return p, nil
}

// policyLink returns the page that sets the policy of a pattern. The URL of that page
// contains a tube that the pattern matches.
func policyLink(pattern string) string {
	tube := cmp.Or(strings.NewReplacer("*", "", "?", "x").Replace(pattern), "default")
	return withQuery("tube/"+op.Segment(tube)+"/policy", "pattern", pattern)
}

// setPolicy changes the settings that differ from the form's original values.
func setPolicy(r *request) (*page, error) {
	form := r.PostForm
	p, err := policyPage(r)
	if err != nil {
		return nil, err
	}
	v := p.Data.(*policyView)
	in := &admin.SetPolicy{OfPolicy: admin.OfPolicy{Pattern: v.Pattern}, Set: make(map[string]string)}
	for i := range v.Rows {
		row := &v.Rows[i]
		row.Was, row.Now = form.Get("was-"+row.Name), strings.TrimSpace(form.Get("now-"+row.Name))
		switch {
		case row.Now == row.Was:
		case row.Now == "":
			in.Unset = append(in.Unset, row.Name)
		default:
			in.Set[row.Name] = row.Now
		}
	}
	one := note{Text: "No setting was changed."}
	if len(in.Set)+len(in.Unset) > 0 {
		done, err := r.api().SetPolicy(r.Context(), in)
		if err != nil {
			p.status, v.Problem = http.StatusUnprocessableEntity, refused(err, func(name string) *string {
				if i := slices.IndexFunc(v.Rows, func(row policyRow) bool { return row.Name == name }); i >= 0 {
					return &v.Rows[i].Problem
				}
				return nil
			})
			return p, nil
		}
		one.Text = "Settings of " + in.Pattern + " saved."
		for _, warning := range done.Warnings {
			one.Text += " " + sentence(warning)
		}
	}
	return r.noting(one, withQuery(r.tubeLink(v.Tube, "")+"/policy", "pattern", v.Pattern))
}

// refused shows the problem of each setting next to its field. field returns the place of
// that text, or nil for another error. refused returns the text above the form.
func refused(err error, field func(name string) *string) (above string) {
	above = "Not saved."
	for name, text := range problemsOf(err) {
		if problem := field(name); problem != nil {
			*problem = sentence(text)
		} else {
			above = inWords(err)
		}
	}
	return above
}

// problemsOf returns the problems of settings, which the API reports on a line each.
func problemsOf(err error) map[string]string {
	all := make(map[string]string)
	for line := range strings.Lines(err.Error()) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
		all[name] = text
	}
	return all
}
