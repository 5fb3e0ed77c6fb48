// Package status has what is known of a cluster, as members, commands, the JSON API and the console have it.
package status

// A Role is what a member does in the cluster.
type Role string

// The roles of members.
const (
	Leader  Role = "leader"
	Voter   Role = "voter"
	Learner Role = "learner" // it has no vote yet: it is catching up
)

// A Cluster is what one member knows of its cluster. Only the leader knows how far the others are.
type Cluster struct {
	Members []Member `json:"members"`
	Leader  uint64   `json:"leader"` // id; 0: nobody is known
	Term    uint64   `json:"term"`
	Quorum  bool     `json:"quorum"` // a majority is heard: changes can be agreed on
}

// A Member is what is known of a member. Applied and Lag are known of all members at the leader, and
// elsewhere of the member itself.
type Member struct {
	ID        uint64 `json:"id"` // less than 2^53
	Address   string `json:"address"`
	Role      Role   `json:"role"`
	Reachable bool   `json:"reachable"`
	Applied   uint64 `json:"applied"` // the last entry that it has, of those that are committed
	Lag       uint64 `json:"lag"`     // entries that are committed and that it does not have
	Version   string `json:"version"` // "": not known

	// Differs has the names of settings that are not the leader's. Only the leader knows them.
	Differs []string `json:"differs,omitempty"`
}
