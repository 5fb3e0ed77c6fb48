package admin

import "github.com/beanpole-mq/beanpole/client/admin/apitype"

// Types of package apitype.
type (
	Cluster        = apitype.Cluster
	ClusterMember  = apitype.ClusterMember
	ClusterProblem = apitype.ClusterProblem
	Finding        = apitype.Finding
	MemberHealth   = apitype.MemberHealth
	Progress       = apitype.Progress
	Role           = apitype.Role
)

// The roles of members; see apitype.
const (
	Leader  = apitype.Leader
	Voter   = apitype.Voter
	Learner = apitype.Learner
)

// A TransferLead is the input of Client.TransferLead.
type TransferLead struct {
	Member uint64 `json:"member" max:"9007199254740991"` // The new leader; 0 selects the member with the most complete log.
}
