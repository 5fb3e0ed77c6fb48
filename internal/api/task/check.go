package task

import (
	"net/http"
	"slices"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// A verb is an action of tasks.
type verb struct {
	takes  []string // members of the request that the action accepts
	states []string // states of jobs that the action accepts
}

var verbs = map[string]verb{
	"kick":    {nil, []string{"buried", "delayed"}},
	"bury":    {[]string{"priority"}, []string{"ready", "delayed", "reserved"}},
	"release": {[]string{"priority", "delay"}, []string{"reserved"}},
	"redrive": {[]string{"to"}, []string{"buried", "ready"}},
	"delete":  {nil, op.IdleStates},
	"move":    {[]string{"to"}, op.IdleStates},
	"change":  {[]string{"priority", "delay", "ttr"}, op.IdleStates},
}

// States returns the states of jobs that an action accepts.
func States(do string) []string { return verbs[do].states }

// Check returns an error if members of a request are contradictory.
func Check(in *admin.StartTask) error {
	v, names := verbs[in.Do], given(in)
	for _, name := range names {
		if !slices.Contains(v.takes, name) {
			return wrong("%s does not accept %s", in.Do, name)
		}
	}
	switch {
	case in.Do == "change" && len(names) == 0:
		return wrong("no change: want priority, delay or ttr")
	case in.Do == "move" && in.To == nil:
		return wrong("to: want the name of a tube")
	case in.To != nil && *in.To == in.Tube:
		return wrong("to: the jobs are already in that tube")
	case (in.State == nil) == (in.IDs == nil):
		return wrong("want one of state and ids")
	case in.State != nil && !slices.Contains(v.states, *in.State):
		return wrong("state: want one of %v", v.states)
	case in.State != nil && *in.State == "buried" && in.Delay != nil:
		return wrong("delay: a buried job has no delay; kick it first")
	}
	return nil
}

func wrong(format string, args ...any) error {
	return admin.Problemf(http.StatusBadRequest, format, args...)
}

// given returns the names of the members in the request that only some actions accept.
func given(in *admin.StartTask) (names []string) {
	for _, one := range []struct {
		name  string
		there bool
	}{{"to", in.To != nil}, {"priority", in.Priority != nil}, {"delay", in.Delay != nil}, {"ttr", in.TTR != nil}} {
		if one.there {
			names = append(names, one.name)
		}
	}
	return names
}
