package api

import (
	"net/http"

	"github.com/beanpole-mq/beanpole/internal/cluster/status"
)

// What is known of a cluster and of a member.
type (
	Cluster       = status.Cluster
	ClusterMember = status.Member
)

func getCluster(r *request) (reply, error) {
	if r.api.opt.Cluster == nil {
		return reply{}, problemf(http.StatusNotFound, "this server is not a member of a cluster")
	}
	c, err := r.api.opt.Cluster()
	if err != nil {
		return reply{}, problemf(http.StatusServiceUnavailable, "%v", err)
	}
	return reply{body: c}, nil
}
