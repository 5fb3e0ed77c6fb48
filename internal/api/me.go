package api

import (
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/rights"
)

// getMe returns the client's identity. It requires no right.
func (r *request) getMe(in *admin.GetMe) (admin.Me, error) {
	me := admin.Me{Identity: r.caller.Identity.Name(), Anywhere: r.rightsOn(rights.SomeTube), Everywhere: r.rightsOn(rights.EveryTube)}
	if in.Tube != "" {
		if err := checkTube(in.Tube); err != nil {
			return me, err
		}
		me.Tube = r.rightsOn(rights.NamedTube, in.Tube)
	}
	return me, nil
}

// rightsOn returns the names of the client's rights on a place.
func (r *request) rightsOn(where rights.Place, tubes ...string) []string {
	names := []string{}
	for _, name := range strings.Split(rights.All.String(), ",") {
		if set, err := rights.Parse([]string{name}); err == nil && r.caller.Identity.Meets(set.On(where), tubes...) {
			names = append(names, name)
		}
	}
	return names
}
