// Package status is what is known of a cluster, as members, commands and clients have it:
// the types are those of package admin, which is public.
package status

import "github.com/beanpole-mq/beanpole/client/admin"

// What is known of a cluster, and the roles of its members.
type (
	Cluster  = admin.Cluster
	Member   = admin.ClusterMember
	Role     = admin.Role
	Progress = admin.Progress
)

// The roles of members.
const (
	Leader  = admin.Leader
	Voter   = admin.Voter
	Learner = admin.Learner
)
