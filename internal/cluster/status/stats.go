package status

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

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

	// keyEach and a number from 1 on: a member as Member.text writes it.
	keyEach = "cluster-member-"
)

// Stats returns what stats shows to a client of a member.
func (s Cluster) Stats(asked uint64) []wire.Stat {
	number := func(key string, n uint64) wire.Stat { return wire.Stat{Key: key, Value: strconv.FormatUint(n, 10)} }
	var lag uint64
	for _, m := range s.Members {
		if m.ID == asked {
			lag = m.Lag
		}
	}
	stats := []wire.Stat{
		number(keyMembers, uint64(len(s.Members))),
		number(keyLeader, s.Leader),
		number(keyMember, asked),
		number(keyTerm, s.Term),
		number(keyLag, lag),
		{Key: keyQuorum, Value: yesOrNo(s.Quorum), Quoted: true},
	}
	for i, m := range s.Members {
		stats = append(stats, wire.Stat{Key: keyEach + strconv.Itoa(i+1), Value: m.text(), Quoted: true})
	}
	return stats
}

// ReadStats returns what the values of stats say.
func ReadStats(all map[string]string) (s Cluster, err error) {
	text := func(key string) string { return strings.Trim(all[key], `"`) }
	if text(keyMembers) == "" {
		return s, errors.New("the server is not a member of a cluster")
	}
	n, err := strconv.Atoi(text(keyMembers))
	if err != nil {
		return s, fmt.Errorf("%s: %w", keyMembers, err)
	}
	if s.Leader, err = strconv.ParseUint(text(keyLeader), 10, 64); err != nil {
		return s, fmt.Errorf("%s: %w", keyLeader, err)
	}
	if s.Term, err = strconv.ParseUint(text(keyTerm), 10, 64); err != nil {
		return s, fmt.Errorf("%s: %w", keyTerm, err)
	}
	s.Quorum = text(keyQuorum) == yesOrNo(true)
	s.Members = []Member{}
	for i := range n {
		key := keyEach + strconv.Itoa(i+1)
		m, err := readMember(text(key))
		if err != nil {
			return s, fmt.Errorf("%s: %w", key, err)
		}
		s.Members = append(s.Members, m)
	}
	return s, nil
}

// text returns a member as one line: id, address, role, whether it is reachable, applied, lag and version.
func (m Member) text() string {
	return fmt.Sprintf("%d %s %s %s %d %d %s", m.ID, m.Address, m.Role, yesOrNo(m.Reachable), m.Applied, m.Lag, m.Version)
}

func readMember(text string) (m Member, err error) {
	fields := strings.SplitN(text, " ", 7)
	if len(fields) < 7 {
		return m, fmt.Errorf("%q is not a member", text)
	}
	for i, to := range map[int]*uint64{0: &m.ID, 4: &m.Applied, 5: &m.Lag} {
		if *to, err = strconv.ParseUint(fields[i], 10, 64); err != nil {
			return m, fmt.Errorf("%q is not a member: %w", text, err)
		}
	}
	m.Address, m.Role, m.Reachable, m.Version = fields[1], Role(fields[2]), fields[3] == yesOrNo(true), fields[6]
	return m, nil
}

func yesOrNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
