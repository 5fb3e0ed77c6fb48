package admin

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Role is what a member does in the cluster.
type Role string

// The roles of members.
const (
	Leader  Role = "leader"
	Voter   Role = "voter"
	Learner Role = "learner" // it has no vote yet: it is catching up
)

// A Cluster is what a member knows of its cluster.
type Cluster struct {
	Members []ClusterMember `json:"members"`
	Self    uint64          `json:"self"`   // The id of the member whose view this is.
	Leader  uint64          `json:"leader"` // The id of the leader; 0: there is none.
	Since   int64           `json:"since"`  // For how many seconds this member has known that leader, or none.
	Term    uint64          `json:"term"`   // Grows with each election.
	Quorum  bool            `json:"quorum"` // Whether a leader hears a majority, so that the queue can be changed.
}

// A ClusterMember is what is known of a member.
type ClusterMember struct {
	ID         uint64   `json:"id" min:"1" max:"9007199254740991"`
	Address    string   `json:"address"` // Where it listens for the other members.
	Role       Role     `json:"role" enum:"leader,voter,learner"`
	Reachable  bool     `json:"reachable"`
	*Progress           // Nil: not known.
	Version    string   `json:"version"`               // Of its program; empty: not known.
	Host       string   `json:"host"`                  // The name of its machine; empty: not known.
	Console    string   `json:"console,omitempty"`     // Where its console is, as it says; not there: it has none, or none that others reach.
	Heard      *int64   `json:"heard,omitempty"`       // How many seconds ago it was heard last. Not there: it never was since this member has started.
	MustRejoin bool     `json:"must_rejoin,omitempty"` // True: its disk has lost what this member knows that it had; it can only join again.
	Refused    string   `json:"refused,omitempty"`     // Why this member does not take it in.
	Refuses    string   `json:"refuses,omitempty"`     // Why it does not take in this member.
	Differs    []string `json:"differs,omitempty"`     // The names of its settings that are not the leader's. Only the leader shows them.
}

// A Progress is how far a member is. The leader knows that of all that it has heard, another member its own only.
type Progress struct {
	Applied uint64 `json:"applied"` // The last entry of the log that it has, of those that are committed. Not there: not known.
	Lag     uint64 `json:"lag"`     // Committed entries that it does not have. Not there: not known.
}

// A ClusterProblem is something that is wrong with a cluster, in words.
type ClusterProblem struct {
	Bad  bool // the queue cannot be used, or the cluster bears fewer losses than it should
	Text string
}

// A TransferLead is the input of Client.TransferLead.
type TransferLead struct {
	Member uint64 `json:"member" max:"9007199254740991"` // Who shall lead; 0: whoever has most of the log.
}

// Problems says what is wrong, the worst first.
func (c *Cluster) Problems() (all []ClusterProblem) {
	add := func(bad bool, format string, args ...any) {
		all = append(all, ClusterProblem{bad, fmt.Sprintf(format, args...)})
	}
	switch {
	case c.Leader == 0:
		add(true, "no leader is known%s: the queue can be used when one is elected", lasting(c.Since))
	case !c.Quorum:
		add(true, "the leader does not hear a majority of the members: nothing can be changed")
	}
	for i := range c.Members {
		m := &c.Members[i]
		switch {
		case m.MustRejoin:
			add(true, "%s must join again, for its disk has lost what it had: beanpole cluster rejoin DIR, on its machine", m)
		case m.Refuses != "":
			add(true, "%s does not take in the member that was asked: %s", m, m.Refuses)
		case m.Refused != "":
			add(true, "%s is not taken in: %s", m, m.Refused)
		}
		if m.Reachable {
			continue
		}
		switch more := c.spare(); {
		case m.Role == Learner:
			add(false, "%s, which learns, cannot be reached%s", m, m.silent())
		case more > 0:
			add(true, "%s cannot be reached%s; the cluster bears the loss of %d more", m, m.silent(), more)
		default:
			add(true, "%s cannot be reached%s; the cluster bears no further loss", m, m.silent())
		}
	}
	for _, m := range c.Members {
		if len(m.Differs) > 0 {
			add(false, "member %d has other settings than the leader, whose count: %s", m.ID, strings.Join(m.Differs, ", "))
		}
	}
	if versions := c.versions(); len(versions) > 1 {
		add(false, "the members run different versions: %s", strings.Join(versions, ", "))
	}
	return all
}

// Summary says how the cluster is if there are no problems.
func (c *Cluster) Summary() string {
	return fmt.Sprintf("all is well: member %d has led%s, %d of %d members are reachable, the cluster bears the loss of %d",
		c.Leader, lasting(c.Since), len(c.Members), len(c.Members), max(0, c.spare()))
}

// spare returns the number of able voters that can fail now and leave a majority. It is
// negative if there is no majority.
func (c *Cluster) spare() int {
	voters, able := 0, 0
	for i := range c.Members {
		if m := &c.Members[i]; m.Role != Learner {
			voters++
			if m.isAble() {
				able++
			}
		}
	}
	return able - voters/2 - 1
}

// CheckRemove returns an error if the removal of a voter would leave the other voters
// without a majority that can acknowledge changes.
func (c *Cluster) CheckRemove(id uint64) error {
	var others, away []string
	isVoter := false
	for i := range c.Members {
		switch m := &c.Members[i]; {
		case m.Role == Learner:
		case m.ID == id:
			isVoter = true
		case m.isAble():
			others = append(others, m.String())
		default:
			away = append(away, m.String())
		}
	}
	if !isVoter || len(away) == 0 || len(others) > len(away) {
		return nil
	}
	return fmt.Errorf("member %d was not removed: without it, %d of the %d remaining voters can answer, which is no majority, and the cluster would stop; "+
		"start, replace or remove %s first (--force removes member %[1]d regardless)", id, len(others), len(others)+len(away), strings.Join(away, " and "))
}

func (c *Cluster) versions() (all []string) {
	for _, m := range c.Members {
		if m.Version != "" {
			all = append(all, m.Version)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// isAble reports whether the member can acknowledge changes.
func (m *ClusterMember) isAble() bool { return m.Reachable && !m.MustRejoin && m.Refused == "" }

func (m *ClusterMember) String() string { return fmt.Sprintf("member %d at %s", m.ID, m.Address) }

// silent says for how long a member was not heard.
func (m *ClusterMember) silent() string {
	if m.Heard == nil {
		return ""
	}
	return lasting(*m.Heard)
}

// lasting says how long something has lasted that is just beginning at 0.
func lasting(seconds int64) string {
	if seconds == 0 {
		return ""
	}
	return fmt.Sprintf(" for %v", time.Duration(seconds)*time.Second)
}
