package cluster

import "time"

// A leader that is silent may live, and have a lease. One whose machine refuses connections to its port has no
// process any more: then there is no need to wait.

// Refused says that a member's machine has refused a connection to its address, that of its last hello, in an attempt that began
// when the member led in a term. With [Options].FastFailover the others elect another leader at once.
func (m *Member) Refused(id, term uint64) {
	if !m.opt.FastFailover {
		return
	}
	m.mail.post(func() {
		if !m.raft.core.Forget(id, term) {
			return
		}
		m.opt.Logger.Info("the leader's machine refuses connections: another one is elected", "leader", id, "term", term)
		// One after the other: votes that are split cost an election timeout, and a vote takes a sync.
		turn := 0
		for _, k := range m.raft.members {
			if k.ID != id && k.ID < m.opt.Self.ID {
				turn++
			}
		}
		time.AfterFunc(standAfter+time.Duration(turn)*standEvery, func() {
			m.mail.post(func() {
				if !m.raft.partial {
					m.raft.core.Stand(term)
				}
			})
		})
	})
}

const (
	standAfter = 20 * time.Millisecond
	standEvery = 120 * time.Millisecond
)
