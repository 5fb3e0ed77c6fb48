// Package status encodes a member's view of the cluster as lines of the stats reply.
package status

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin/apitype"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// The keys of stats.
const (
	keyMembers = "cluster-members" // number of members
	keyLeader  = "cluster-leader"  // id, or 0 if there is no leader
	keyMember  = "cluster-member"  // id of the member that the client is connected to
	keyTerm    = "cluster-term"
	keyLag     = "cluster-lag" // committed entries that this member lacks
	keyQuorum  = "cluster-quorum"

	// keyEach is followed by a number, from 1 on. The value is the text of a member.
	keyEach = "cluster-member-"
)

// Stats returns the lines of the stats reply for a client of the member asked.
func Stats(s *apitype.Cluster, asked uint64) []wire.Stat {
	number := func(key string, n uint64) wire.Stat { return wire.Stat{Key: key, Value: strconv.FormatUint(n, 10)} }
	stats := []wire.Stat{
		number(keyMembers, uint64(len(s.Members))),
		number(keyLeader, s.Leader),
		number(keyMember, asked),
		number(keyTerm, s.Term),
	}
	for _, m := range s.Members {
		if m.ID == asked && m.Progress != nil {
			stats = append(stats, number(keyLag, m.Lag))
		}
	}
	stats = append(stats, wire.Stat{Key: keyQuorum, Value: yesOrNo(s.Quorum), Quoted: true})
	for i := range s.Members {
		stats = append(stats, wire.Stat{Key: keyEach + strconv.Itoa(i+1), Value: text(&s.Members[i]), Quoted: true})
	}
	return stats
}

// unknown stands for a value that is not available.
const unknown = "-"

// text returns a member as one line: id, address, role, reachable, applied, lag, version,
// free MiB of its disk, catching up, and its trouble.
func text(m *apitype.ClusterMember) string {
	progress := unknown + " " + unknown
	if m.Progress != nil {
		progress = fmt.Sprintf("%d %d", m.Applied, m.Lag)
	}
	free := unknown
	if m.DiskFree != nil {
		free = strconv.FormatInt(*m.DiskFree>>20, 10)
	}
	trouble := strings.Map(func(r rune) rune {
		if r < ' ' || r == '"' || r == '\\' {
			return ' '
		}
		return r
	}, m.Trouble)
	return strings.TrimSpace(fmt.Sprintf("%d %s %s %s %s %s %s %s %s", m.ID, m.Address, m.Role, yesOrNo(m.Reachable), progress, cmp.Or(m.Version, unknown), free, yesOrNo(m.CatchingUp), trouble))
}

func yesOrNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
