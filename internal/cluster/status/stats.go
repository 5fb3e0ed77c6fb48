// Package status has what a member knows of the cluster as lines of the reply to stats, and
// reads it from there.
package status

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/wire"
)

// The keys of stats.
const (
	keyMembers = "cluster-members" // how many
	keyLeader  = "cluster-leader"  // id; 0: nobody
	keyMember  = "cluster-member"  // id of the one that the client has asked
	keyTerm    = "cluster-term"
	keyLag     = "cluster-lag" // entries that the member lacks which was asked
	keyQuorum  = "cluster-quorum"

	// keyEach and a number from 1 on: a member as text writes it.
	keyEach = "cluster-member-"
)

// Stats returns what stats shows to a client of a member.
func Stats(s *admin.Cluster, asked uint64) []wire.Stat {
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

// ReadStats returns what the values of stats say.
func ReadStats(all map[string]string) (s admin.Cluster, err error) {
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
	s.Self, _ = strconv.ParseUint(value(keyMember), 10, 64) // a number, as the leader's id
	s.Quorum = value(keyQuorum) == yesOrNo(true)
	s.Members = []admin.ClusterMember{}
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

// unknown stands for a number in the line of a member that is not known.
const unknown = "-"

// text returns a member as one line: id, address, role, whether it is reachable, applied,
// lag, version, free MiB of its disk, whether it is catching up, and its trouble.
func text(m *admin.ClusterMember) string {
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

func readMember(text string) (m admin.ClusterMember, err error) {
	fields := append(strings.SplitN(text, " ", 10), "")
	if len(fields) < 10 {
		return m, fmt.Errorf("%q is not a member", text)
	}
	numbers := map[int]*uint64{0: &m.ID}
	if fields[4] != unknown {
		m.Progress = new(admin.Progress)
		numbers[4], numbers[5] = &m.Applied, &m.Lag
	}
	for i, to := range numbers {
		if *to, err = strconv.ParseUint(fields[i], 10, 64); err != nil {
			return m, fmt.Errorf("%q is not a member: %w", text, err)
		}
	}
	m.Address, m.Role, m.Reachable, m.Version = fields[1], admin.Role(fields[2]), fields[3] == yesOrNo(true), fields[6]
	if m.Version == unknown {
		m.Version = ""
	}
	if fields[7] != unknown {
		free, err := strconv.ParseInt(fields[7], 10, 32)
		if err != nil {
			return m, fmt.Errorf("%q is not a member: %w", text, err)
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
