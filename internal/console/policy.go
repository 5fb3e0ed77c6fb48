package console

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
)

// A policyView is the page of a tube's policy, with a form that sets and unsets what is set for a pattern.
type policyView struct {
	Tube    string
	Pattern string   // that the form is about
	Others  []string // patterns of the tube for which something is set
	Apart   bool     // the pattern does not match the tube
	Rows    []policyRow
	Problem string // why it was not done, with what was sent
}

// A policyRow is a setting.
type policyRow struct {
	admin.SettingInForce
	Was     string // what is set for the pattern, as the form was made
	Now     string // what the form has
	Problem string // what is wrong with that
}

// policyPage has the form for the pattern that the URL or the form names; for the tube if there is none.
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
	p.Curl = r.curl("GET /tubes/{tube}/policy", &tube)
	return p, nil
}

// setPolicy does what the form of a policy asks for: it changes what differs from what the form was made with.
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
		if strings.Contains(row.Takes, "duration") {
			row.Now = shortUnits(row.Now)
		}
		switch {
		case row.Now == row.Was:
		case row.Now == "":
			in.Unset = append(in.Unset, row.Name)
		default:
			in.Set[row.Name] = row.Now
		}
	}
	one := note{Text: "Nothing was changed."}
	if len(in.Set)+len(in.Unset) > 0 {
		done, err := r.api().SetPolicy(r.Context(), in)
		if err != nil {
			v.refused(inWords(err))
			p.status = http.StatusUnprocessableEntity
			return p, nil
		}
		one.Text = saysPolicy(in, &done)
	}
	return r.noting(one, withQuery(r.tubeLink(v.Tube, "")+"/policy", "pattern", v.Pattern))
}

// refused says why the form was refused, beside the field if it is about one.
func (v *policyView) refused(why string) {
	v.Problem = why
	name, rest, _ := strings.Cut(why, ": ")
	for i := range v.Rows {
		if strings.EqualFold(v.Rows[i].Name, name) {
			v.Rows[i].Problem, v.Problem = sentence(rest), "Nothing was changed: "+v.Rows[i].Name+" cannot be that."
		}
	}
}

// saysPolicy says what was set and unset.
func saysPolicy(in *admin.SetPolicy, done *admin.Policy) string {
	var did []string
	for _, name := range slices.Sorted(maps.Keys(in.Set)) {
		did = append(did, name+" is "+done.Settings[name])
	}
	for _, name := range in.Unset {
		did = append(did, name+" is not set any more")
	}
	text := fmt.Sprintf("For %s %s.", in.Pattern, strings.Join(did, ", "))
	for _, warning := range done.Warnings {
		text += " " + sentence(warning)
	}
	return text
}
