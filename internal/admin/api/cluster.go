package api

import "net/http"

// A Cluster is what one member knows of its cluster.
type Cluster struct {
	Members []ClusterMember `json:"members"`
	Leader  uint64          `json:"leader"` // id; 0: nobody
	Term    uint64          `json:"term"`
	Quorum  bool            `json:"quorum"`
}

// A ClusterMember is what is known of a member. Ids are less than 2^53.
type ClusterMember struct {
	ID        uint64 `json:"id"`
	Address   string `json:"address"`
	Role      string `json:"role"` // leader, voter or learner
	Reachable bool   `json:"reachable"`
	Applied   uint64 `json:"applied"`
	Lag       uint64 `json:"lag"`
	Version   string `json:"version"`
}

func getCluster(r *request) (reply, error) {
	if _, err := r.query(); err != nil {
		return reply{}, err
	}
	if r.api.opt.Cluster == nil {
		return reply{}, problemf(http.StatusNotFound, "this server is not a member of a cluster")
	}
	c, err := r.api.opt.Cluster()
	if err != nil {
		return reply{}, problemf(http.StatusServiceUnavailable, "%v", err)
	}
	return reply{body: c}, nil
}
