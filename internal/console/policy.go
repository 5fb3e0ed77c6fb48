package console

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// A policyView is the page of a tube's policy, with a form that sets and unsets what is set for a pattern.
type policyView struct {
	Tube    string
	Pattern string // that the form is about; it matches the tube
	Rows    []policyRow
	Problem string // why it was not done, with what was sent
}

// A policyRow is a setting.
type policyRow struct {
	admin.SettingInForce
	Was string // what is set for the pattern, as the form was made
	Now string // what the form has
}

// From says where the value in force comes from.
func (r *policyRow) From() string {
	switch r.Source {
	case "file":
		return fmt.Sprintf("policy %d of the file, of %s", r.Number, r.Pattern)
	case "runtime":
		return "set for " + r.Pattern
	}
	return "default"
}

func policyPage(r *request) (*page, error) {
	tube := admin.OfTube{Tube: r.PathValue("tube")}
	v := &policyView{Tube: tube.Tube, Pattern: cmp.Or(strings.TrimSpace(r.URL.Query().Get("pattern")), tube.Tube)}
	inForce, err := r.api().ExplainPolicy(r.Context(), &tube)
	if err != nil {
		return nil, err
	}
	all, err := r.api().ListPolicies(r.Context())
	if err != nil {
		return nil, err
	}
	var set map[string]string
	if i := slices.IndexFunc(all.Policies, func(p admin.Policy) bool { return p.Source == "runtime" && p.Pattern == v.Pattern }); i >= 0 {
		set = all.Policies[i].Settings
	}
	for _, s := range inForce.Settings {
		v.Rows = append(v.Rows, policyRow{s, set[s.Name], set[s.Name]})
	}
	p := newPage("policy", "Policy of "+tube.Tube, "tubes", v)
	p.Me, p.Curl = r.meOn(tube.Tube), r.curl("GET /tubes/{tube}/policy", &tube)
	return p, nil
}

// changed returns what a form changes of what it was made with; nil: nothing.
func changedPolicy(form url.Values) *admin.SetPolicy {
	in := &admin.SetPolicy{OfPolicy: admin.OfPolicy{Pattern: form.Get("pattern")}, Set: make(map[string]string)}
	for field := range form {
		name, ok := strings.CutPrefix(field, "now-")
		now := strings.TrimSpace(form.Get(field))
		switch {
		case !ok || now == form.Get("was-"+name):
		case now == "":
			in.Unset = append(in.Unset, name)
		default:
			in.Set[name] = now
		}
	}
	slices.Sort(in.Unset)
	if len(in.Set)+len(in.Unset) == 0 {
		return nil
	}
	return in
}

// setPolicy does what the form of a policy asks for.
func setPolicy(r *request) (*page, error) {
	one := note{Text: "Nothing was changed."}
	if in := changedPolicy(r.PostForm); in != nil {
		done, err := r.api().SetPolicy(r.Context(), in)
		if err != nil {
			return policyAgain(r, r.PostForm, err)
		}
		one = note{Text: saysPolicy(in, &done)}
	}
	return r.noting(one, withQuery(r.tubeLink(r.PathValue("tube"), "")+"/policy", "pattern", r.PostForm.Get("pattern")))
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

// policyAgain is the page with what was sent, and why that was not done.
func policyAgain(r *request, form url.Values, why error) (*page, error) {
	r.URL.RawQuery = url.Values{"pattern": {form.Get("pattern")}}.Encode()
	p, err := policyPage(r)
	if err != nil {
		return nil, err
	}
	v := p.Data.(*policyView)
	for i := range v.Rows {
		v.Rows[i].Now = form.Get("now-" + v.Rows[i].Name)
	}
	v.Problem, p.status = sentence(inWords(why)), http.StatusUnprocessableEntity
	return p, nil
}
