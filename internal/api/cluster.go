package api

import (
	"net/http"

	"github.com/beanpole-mq/beanpole/client/admin"
)

func (r *request) getCluster(*admin.None) (page admin.Cluster, err error) {
	if r.api.opt.Cluster == nil {
		return page, problemf(http.StatusNotFound, "this server is not a member of a cluster")
	}
	if page, err = r.api.opt.Cluster(); err != nil {
		return page, problemf(http.StatusServiceUnavailable, "%v", err)
	}
	return page, nil
}
