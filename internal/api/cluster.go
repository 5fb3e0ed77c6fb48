package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
)

var errNoMember = problemf(http.StatusNotFound, "this server is not a member of a cluster")

func (r *request) getCluster(*admin.None) (page admin.Cluster, err error) {
	if r.api.opt.Cluster == nil {
		return page, errNoMember
	}
	if page, err = r.api.opt.Cluster(); err != nil {
		return page, problemf(http.StatusServiceUnavailable, "%v", err)
	}
	return page, nil
}

// transferPatience is the time limit for a transfer. It is longer than an election.
const transferPatience = 20 * time.Second

func (r *request) transferLead(in *admin.TransferLead) (none admin.None, err error) {
	if r.api.opt.Transfer == nil {
		return none, errNoMember
	}
	if in.Member != 0 {
		r.note("member", in.Member)
		c, err := r.getCluster(nil)
		if err == nil && !slices.ContainsFunc(c.Members, func(m admin.ClusterMember) bool { return m.ID == in.Member }) {
			return none, problemf(http.StatusNotFound, "no member %d", in.Member)
		}
	}
	ctx, cancel := context.WithTimeout(r.ctx, transferPatience)
	defer cancel()
	if err := r.api.opt.Transfer(ctx, in.Member); err != nil {
		return none, problemf(http.StatusServiceUnavailable, "%v", err)
	}
	return none, nil
}
