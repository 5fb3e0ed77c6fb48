package api

import (
	"strings"

	"github.com/beanpole-mq/beanpole/internal/rights"
)

// Me is who the client is, and what it may do.
type Me struct {
	Identity   string   `json:"identity"`       // empty: none
	Anywhere   []string `json:"anywhere"`       // rights on some tube
	Everywhere []string `json:"everywhere"`     // rights on every tube
	Tube       []string `json:"tube,omitempty"` // rights on the tube that was asked for
}

// getMe tells the client who it is. Everybody may ask.
func getMe(r *request) (reply, error) {
	me := Me{Identity: r.who.Name(), Anywhere: r.rightsOn(rights.SomeTube), Everywhere: r.rightsOn(rights.EveryTube)}
	if tube := r.query.Get("tube"); tube != "" {
		if err := checkTube(tube); err != nil {
			return reply{}, err
		}
		me.Tube = r.rightsOn(rights.NamedTube, tube)
	}
	return reply{body: me}, nil
}

// rightsOn returns the names of the rights that the client has on a place.
func (r *request) rightsOn(where rights.Place, tubes ...string) []string {
	names := []string{}
	for _, name := range strings.Split(rights.All.String(), ",") {
		if set, err := rights.Parse([]string{name}); err == nil && r.who.Meets(set.On(where), tubes...) {
			names = append(names, name)
		}
	}
	return names
}
