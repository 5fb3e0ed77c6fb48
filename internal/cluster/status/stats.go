// Package status encodes a member's view of the cluster as lines of the stats reply, and
// decodes those lines.
package status

import (
	"cmp"
	"errors"
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

// ReadStats decodes the lines of a stats reply.
func ReadStats(all map[string]string) (s apitype.Cluster, err error) {
	value := func(key string) string { return strings.Trim(all[key], `"`) }
	if value(keyMembers) == "" {
		return s, errors.New("the server is not a member of a cluster")
	}
	n, err := strconv.Atoi(value(keyMembers))
	if err != nil {
		return s, fmt.Errorf("%s: %w", keyMembers, err)
	}
	if s.Leader, err = strconv.ParseUint(value(keyLeader), 10, 64); err != nil {
		return s, fmt.Errorf("%s: %w", keyLeader, err)
	}
	if s.Term, err = strconv.ParseUint(value(keyTerm), 10, 64); err != nil {
		return s, fmt.Errorf("%s: %w", keyTerm, err)
	}
	s.Self, _ = strconv.ParseUint(value(keyMember), 10, 64) // valid whenever the leader's id is
	s.Quorum = value(keyQuorum) == yesOrNo(true)
	s.Members = []apitype.ClusterMember{}
	for i := range n {
		key := keyEach + strconv.Itoa(i+1)
		m, err := readMember(value(key))
		if err != nil {
			return s, fmt.Errorf("%s: %w", key, err)
		}
		s.Members = append(s.Members, m)
	}
	return s, nil
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

func readMember(text string) (m apitype.ClusterMember, err error) {
	fields := append(strings.SplitN(text, " ", 10), "")
	if len(fields) < 10 {
		return m, fmt.Errorf("invalid member %q", text)
	}
	numbers := map[int]*uint64{0: &m.ID}
	if fields[4] != unknown {
		m.Progress = new(apitype.Progress)
		numbers[4], numbers[5] = &m.Applied, &m.Lag
	}
	for i, to := range numbers {
		if *to, err = strconv.ParseUint(fields[i], 10, 64); err != nil {
			return m, fmt.Errorf("invalid member %q: %w", text, err)
		}
	}
	m.Address, m.Role, m.Reachable, m.Version = fields[1], apitype.Role(fields[2]), fields[3] == yesOrNo(true), fields[6]
	if m.Version == unknown {
		m.Version = ""
	}
	if fields[7] != unknown {
		free, err := strconv.ParseInt(fields[7], 10, 32)
		if err != nil {
			return m, fmt.Errorf("invalid member %q: %w", text, err)
		}
		m.DiskFree = new(free << 20)
	}
	m.CatchingUp, m.Trouble = fields[8] == yesOrNo(true), fields[9]
	return m, nil
}

func yesOrNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
