package cluster

import (
	"math/rand/v2"
	"time"
)

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
		// Not all at once: votes that are split cost an election timeout.
		time.AfterFunc(standAfter+rand.N(standSpread), func() {
			m.mail.post(func() { m.raft.core.Stand(term) })
		})
	})
}

const (
	standAfter  = 20 * time.Millisecond
	standSpread = 60 * time.Millisecond
)
