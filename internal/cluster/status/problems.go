package status

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Problem is something that is wrong with a cluster, in words.
type Problem struct {
	Bad  bool // the queue cannot be used, or the cluster bears fewer losses than it should
	Text string
}

// Problems says what is wrong, the worst first.
func (c *Cluster) Problems() (all []Problem) {
	add := func(bad bool, format string, args ...any) {
		all = append(all, Problem{bad, fmt.Sprintf(format, args...)})
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

// spare returns how many voters may be lost and leave a majority; less than 0: there is none.
func (c *Cluster) spare() int {
	voters, up := 0, 0
	for _, m := range c.Members {
		if m.Role != Learner {
			voters++
			if m.Reachable {
				up++
			}
		}
	}
	return up - voters/2 - 1
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

func (m *Member) String() string { return fmt.Sprintf("member %d at %s", m.ID, m.Address) }

// silent says for how long a member was not heard.
func (m *Member) silent() string {
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
