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

// A Cluster is what one member knows of its cluster.
type Cluster struct {
	Members []Member `json:"members"`
	Leader  uint64   `json:"leader"` // id; 0: nobody is known
	Since   int64    `json:"since"`  // s; for how long the member has known that one, or nobody
	Term    uint64   `json:"term"`
	Quorum  bool     `json:"quorum"` // a majority is heard: changes can be agreed on
}

// A Member is what is known of a member.
type Member struct {
	ID        uint64 `json:"id"` // less than 2^53
	Address   string `json:"address"`
	Role      Role   `json:"role"`
	Reachable bool   `json:"reachable"`
	*Progress        // nil: not known
	Version   string `json:"version"` // "": not known

	Heard      *int64 `json:"heard,omitempty"`       // s since it was heard last; nil: it never was
	MustRejoin bool   `json:"must_rejoin,omitempty"` // its disk has forgotten what it had
	Refused    string `json:"refused,omitempty"`     // why the member that was asked does not take it in
	Refuses    string `json:"refuses,omitempty"`     // why it does not take in the member that was asked

	// Differs has the names of settings that are not the leader's. Only the leader knows them.
	Differs []string `json:"differs,omitempty"`
}

// A Progress is how far a member is. The leader knows that of all that it has heard, another member its own only.
type Progress struct {
	Applied uint64 `json:"applied"` // the last entry that it has, of those that are committed
	Lag     uint64 `json:"lag"`     // entries that are committed and that it does not have
}
