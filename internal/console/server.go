package console

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/beanpole-mq/beanpole/client/admin"
)

// A serverView is the page of the server.
type serverView struct {
	admin.Stats
	Facts    *admin.Server  // nil if the user cannot see them
	Cluster  *admin.Cluster // nil if the server is not a member of a cluster
	Leads    string         // name of the leader
	Troubles []string       // problems of the cluster
	Where    string         // address of another server; empty for the own server
}

// SettingsBy returns the settings that have their defaults, or the other settings.
func (v *serverView) SettingsBy(byDefault bool) []admin.Setting {
	return slices.DeleteFunc(slices.Clone(v.Facts.Settings), func(s admin.Setting) bool { return (s.From == "default") != byDefault })
}

// RefusedAny reports whether a command was refused.
func (v *serverView) RefusedAny() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(v.RefusedCommands)), func(n uint64) bool { return n > 0 })
}

// Filled returns the used share of max-memory, as text.
func (v *serverView) Filled() string {
	m := v.Facts.Memory
	if m.Limit == 0 {
		return byteSize(m.Jobs)
	}
	return fmt.Sprintf("%s of %s, %d %%", byteSize(m.Jobs), byteSize(m.Limit), m.Jobs*100/m.Limit)
}

// serverPage shows the counters and the configuration of the server.
func serverPage(r *request) (*page, error) {
	v := new(serverView)
	var err error
	if v.Stats, err = r.api().GetStats(r.Context()); err != nil {
		return nil, err
	}
	facts, err := r.api().GetServer(r.Context())
	if err := optional(err); err != nil {
		return nil, err
	}
	if err == nil {
		v.Facts = &facts
	}
	if err := v.addCluster(r); err != nil {
		return nil, err
	}
	if other := r.site.other; other != nil {
		v.Where = other.URL
	}
	p := newPage("server", "Server", "server", v)
	p.Server = &v.Stats
	p.shape = append(p.shape, fmt.Sprint(v.Draining, len(v.Troubles)))
	if v.Journal != nil {
		p.shape = append(p.shape, v.Journal.Health)
	}
	return p, nil
}

// addCluster adds the cluster of the server, if any. It lists unreachable members first,
// then the leader.
func (v *serverView) addCluster(r *request) error {
	c, err := r.api().GetCluster(r.Context())
	switch {
	case isStatus(err, http.StatusServiceUnavailable):
		v.Cluster, v.Troubles = &c, []string{err.Error()}
		return nil
	case err != nil:
		return optional(notFound(err))
	}
	order := func(m *admin.ClusterMember) int {
		return slices.Index([]bool{!m.Reachable, m.Role == "leader", true}, true)
	}
	c.Members = slices.Clone(c.Members) // the server can share them
	slices.SortStableFunc(c.Members, func(a, b admin.ClusterMember) int { return cmp.Or(order(&a)-order(&b), cmp.Compare(a.ID, b.ID)) })
	v.Cluster = &c
	if i := slices.IndexFunc(c.Members, func(m admin.ClusterMember) bool { return m.ID == c.Leader }); i >= 0 {
		v.Leads = cmp.Or(c.Members[i].Host, c.Members[i].Address)
	}
	for _, p := range c.Problems() {
		v.Troubles = append(v.Troubles, p.Text)
	}
	return nil
}
