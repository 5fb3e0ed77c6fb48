package apitype

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Role is the role of a member in the cluster.
type Role string

// The roles of members. A learner has no vote until it has caught up.
const (
	Leader  Role = "leader"
	Voter   Role = "voter"
	Learner Role = "learner"
)

// A Cluster is a member's view of its cluster.
type Cluster struct {
	Members []ClusterMember `json:"members"`
	Self    uint64          `json:"self"`   // Id of the member whose view this is.
	Leader  uint64          `json:"leader"` // Id of the leader; 0 if there is none.
	Since   int64           `json:"since"`  // Seconds since the last change of the leader.
	Term    uint64          `json:"term"`   // Increases with each election.
	Quorum  bool            `json:"quorum"` // A leader is in contact with a majority, so the queue can be changed.
}

// A ClusterMember is a view of one member.
type ClusterMember struct {
	ID         uint64   `json:"id" min:"1" max:"9007199254740991"`
	Address    string   `json:"address"` // Address of the member for the other members.
	Role       Role     `json:"role" enum:"leader,voter,learner"`
	Reachable  bool     `json:"reachable"`
	*Progress           // Nil if unknown.
	Version    string   `json:"version"`               // Version of the member's program. Empty if unknown.
	Host       string   `json:"host"`                  // Name of the member's machine. Empty if unknown.
	Console    string   `json:"console,omitempty"`     // URL of the member's console, if other machines can reach it.
	Heard      *int64   `json:"heard,omitempty"`       // Seconds since the member's last message. Absent if it has sent none since this member started.
	MustRejoin bool     `json:"must_rejoin,omitempty"` // Its disk has lost changes that it had acknowledged; it can only join again.
	Refused    string   `json:"refused,omitempty"`     // The reason why this member refuses the other member.
	Refuses    string   `json:"refuses,omitempty"`     // The reason why the other member refuses this member.
	CatchingUp bool     `json:"catching_up,omitempty"` // The member lacks changes that are older than 3 s. Only the leader shows this.
	KeepCopy   bool     `json:"keep_copy,omitempty"`   // The member has acknowledged changes that the leader lacks. Only that leader shows this.
	Differs    []string `json:"differs,omitempty"`     // Names of the settings that differ from the leader's. Only the leader shows them.
	MemberHealth
}

// A MemberHealth is a member's report about itself. The leader has the reports of all
// members; any other member has only its own report.
type MemberHealth struct {
	Trouble  string `json:"trouble,omitempty"`   // The reason why the member cannot acknowledge changes, or cannot catch up.
	Received int64  `json:"received,omitempty"`  // Bytes of the queue that the member has received, while it receives the whole queue.
	DiskFree *int64 `json:"disk_free,omitempty"` // Free bytes on the member's disk. Absent if unknown.
}

// A Progress is the progress of a member. The leader shows the progress of every member
// that it has heard from; any other member shows only its own.
type Progress struct {
	Applied uint64 `json:"applied"` // The last committed log entry that the member has. Absent if unknown.
	Lag     uint64 `json:"lag"`     // Number of committed entries that the member lacks. Absent if unknown.
}

// A ClusterProblem describes something that is wrong with a cluster.
type ClusterProblem struct {
	Bad  bool // the queue cannot be used, or the cluster survives fewer failures than it should
	Text string
}

// Free space of a member's disk. A member with less than fullDisk cannot store much more,
// so it does not count as able to become the leader.
const (
	fullDisk = 64 << 20
	lowDisk  = 512 << 20
)

// Problems returns everything that is wrong: the state of the cluster first, then that of
// each member.
func (c *Cluster) Problems() (all []ClusterProblem) {
	add := func(bad bool, format string, args ...any) {
		all = append(all, ClusterProblem{bad, fmt.Sprintf(format, args...)})
	}
	switch {
	case c.Leader == 0:
		add(true, "no leader%s; the queue is available after an election", lasting(c.Since))
	case !c.Quorum:
		add(true, "the leader cannot reach a majority of the members: changes are refused")
	}
	weak := false
	for i := range c.Members {
		m := &c.Members[i]
		if text := c.problem(m); text != "" {
			weak = weak || m.Role != Learner
			add(m.Role != Learner || m.Refused != "" || m.Trouble != "", "%s %s", m, text)
		} else if m.DiskFree != nil && *m.DiskFree < lowDisk {
			add(false, "%s has %d MiB left on its disk", m, *m.DiskFree>>20)
		}
		if m.Refuses != "" && !m.MustRejoin {
			add(true, "%s refuses this member: %s", m, m.Refuses)
		}
	}
	switch {
	case !weak || c.Leader == 0 || !c.Quorum:
	case c.spare() < 0:
		add(true, "a majority of the members is full, failing or catching up: puts can fail or wait")
	default:
		add(true, "the cluster survives %s", c.survives())
	}
	for _, m := range c.Members {
		if len(m.Differs) > 0 {
			add(false, "member %d has settings that differ from the leader's, which apply: %s", m.ID, strings.Join(m.Differs, ", "))
		}
	}
	if versions := c.versions(); len(versions) > 1 {
		add(false, "the members run different versions: %s", strings.Join(versions, ", "))
	}
	return all
}

// problem describes why a member cannot acknowledge changes. It returns "" if the member
// can.
func (c *Cluster) problem(m *ClusterMember) string {
	switch {
	case m.KeepCopy:
		return "has stopped with acknowledged changes that the cluster lacks: keep a copy of its directory before it joins again ('beanpole journal copy DIR NEW' gets its jobs)"
	case m.MustRejoin && c.canRejoin():
		return "must join again, because its disk has lost acknowledged changes: run 'beanpole cluster rejoin DIR' on its machine"
	case m.MustRejoin:
		return "has lost acknowledged changes, and so has a majority of the members, which 'rejoin' requires: choose the member whose log ends last ('beanpole cluster status --offline DIR'), " +
			"run 'beanpole cluster recover --force-new-cluster DIR' there, and let the others join it"
	case m.Refused != "":
		return "is not accepted: " + m.Refused
	case !m.Reachable && m.Role == Learner:
		return "is a learner and cannot be reached" + m.silent()
	case !m.Reachable:
		return "cannot be reached" + m.silent()
	case m.Progress == nil && c.Leader != 0 && c.Leader == c.Self:
		return "has not answered this leader yet"
	case m.Trouble != "":
		return "has a problem:  " + strings.TrimPrefix(m.Trouble, "this member ")
	case m.DiskFree != nil && *m.DiskFree < fullDisk:
		return fmt.Sprintf("has a full disk: %d MiB are left", *m.DiskFree>>20)
	case m.CatchingUp && m.Received > 0:
		return fmt.Sprintf("is catching up: it has received %d MiB of the queue", m.Received>>20)
	case m.CatchingUp && m.Progress != nil:
		return fmt.Sprintf("is catching up: it lacks %d entries", m.Lag)
	case m.CatchingUp:
		return "is catching up"
	}
	return ""
}

// canRejoin reports whether a majority of the voters have lost nothing.
func (c *Cluster) canRejoin() bool {
	voters, lost := 0, 0
	for i := range c.Members {
		if m := &c.Members[i]; m.Role != Learner {
			voters++
			if m.MustRejoin {
				lost++
			}
		}
	}
	return voters-lost > voters/2
}

// Summary describes a cluster without problems.
func (c *Cluster) Summary() string {
	well := "all is well"
	if c.Self != c.Leader {
		well = fmt.Sprintf("member %d, a follower, sees no problem", c.Self)
	}
	return fmt.Sprintf("%s: member %d has led for %v, %d of %d members are reachable, the cluster survives %s",
		well, c.Leader, time.Duration(c.Since)*time.Second, len(c.Members), len(c.Members), c.survives())
}

// survives returns the number of failures that the cluster survives now, in words.
func (c *Cluster) survives() string {
	switch n := c.spare(); n {
	case 1:
		return "the loss of 1 member"
	case 0:
		return "no further loss"
	default:
		return fmt.Sprintf("the loss of %d members", n)
	}
}

// spare returns the number of able voters that can fail now without the loss of the
// majority. It is negative if there is no majority.
func (c *Cluster) spare() int {
	voters, able := 0, 0
	for i := range c.Members {
		if m := &c.Members[i]; m.Role != Learner {
			voters++
			if c.isAble(m) {
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
		case c.isAble(m):
			others = append(others, m.String())
		default:
			away = append(away, m.String())
		}
	}
	if !isVoter || len(away) == 0 || len(others) > len(away) {
		return nil
	}
	return fmt.Errorf("member %d was not removed: without it, %d of the %d remaining voters can acknowledge changes, which is not a majority, and the cluster would stop; "+
		"repair, replace or remove %s first (--force removes member %[1]d regardless)", id, len(others), len(others)+len(away), strings.Join(away, " and "))
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
func (c *Cluster) isAble(m *ClusterMember) bool { return c.problem(m) == "" }

func (m *ClusterMember) String() string { return fmt.Sprintf("member %d at %s", m.ID, m.Address) }

// silent returns the time since a member was last heard from, in words.
func (m *ClusterMember) silent() string {
	if m.Heard == nil {
		return ""
	}
	return lasting(*m.Heard)
}

// lasting returns a duration in words, or "" for 0.
func lasting(seconds int64) string {
	if seconds == 0 {
		return ""
	}
	return fmt.Sprintf(" for %v", time.Duration(seconds)*time.Second)
}
