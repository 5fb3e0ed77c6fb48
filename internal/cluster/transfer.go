package cluster

import (
	"context"
	"errors"
	"fmt"
)

// Transfer transfers the leadership to another voter. If to is 0, it chooses the voter
// with the longest log. It first waits until this member's turns are settled.
func (m *Member) Transfer(ctx context.Context, to uint64) error {
	var term uint64
	anybody := to == 0
	err := m.changeMembers(func() error {
		if anybody {
			if to = m.raft.transferTarget(anyVoter); to == 0 {
				return errors.New("cluster: cannot transfer the leadership: no other voter is reachable")
			}
		}
		self := m.opt.Self.ID
		if voters := m.raft.core.Status().Config.Voters[0]; to == self || !hasKey(voters, to) {
			return fmt.Errorf("cluster: cannot transfer the leadership to %d; choose a reachable voter", to)
		}
		term = m.raft.core.Lead().Term
		m.raft.startTransfer(to)
		return nil
	})
	if err != nil {
		return err
	}
	for {
		watch := m.Watch()
		switch lead := m.Lead(); {
		case lead.Epoch > 0:
			return fmt.Errorf("%w by member %d", ErrDeclined, to)
		case lead.Term == term || lead.Leader == 0 || lead.Leader == m.opt.Self.ID:
		case anybody || lead.Leader == to:
			return nil
		default:
			return fmt.Errorf("cluster: member %d was elected instead of member %d", lead.Leader, to)
		}
		if err := m.pause(ctx, watch); err != nil {
			return err
		}
	}
}

// A transfer is a transfer of the leadership to another member that is in progress.
type transfer struct {
	to       uint64 // the new leader; 0 if there is no transfer
	settled  bool   // all turns of the epoch are settled
	giveUpAt int64  // time at which the transfer is abandoned, on Options.Now
}

// startTransfer starts a transfer. The engine stops making changes. finishTransfer
// transfers the leadership when all turns are settled. Without an epoch, the transfer
// happens at once.
func (r *raftLoop) startTransfer(to uint64) {
	if r.core.Lead().Epoch == 0 {
		r.core.Transfer(to)
		return
	}
	r.transfer = transfer{to: to, giveUpAt: r.m.opt.Now() + 10*int64(r.m.opt.Tick)}
	r.publish()
}

// settle records that all turns of the ended epoch are settled.
func (r *raftLoop) settle() {
	r.transfer.settled = true
	r.finishTransfer() // before Reloaded, in case the core must resign
}

// finishTransfer transfers the leadership when all turns of the epoch are settled, or at
// giveUpAt.
func (r *raftLoop) finishTransfer() {
	if r.transfer.to == 0 {
		return
	}
	active, inTime := r.core.Lead().Epoch != 0, r.m.opt.Now() < r.transfer.giveUpAt
	if active && !r.transfer.settled && inTime {
		return
	}
	r.core.Resign() // unsettled changes can be lost, so a new engine is created
	if active {
		r.core.Transfer(r.transfer.to)
	}
	r.transfer.to = 0
}

// transferTarget returns the reachable voter with the longest log for which suits returns
// true, or 0.
func (r *raftLoop) transferTarget(suits func(id uint64) bool) (id uint64) {
	s := r.core.Status()
	var most uint64
	for voter := range s.Config.Voters[0] {
		if p := s.Progress[voter]; voter != r.m.opt.Self.ID && r.isReachable(voter) && p.Match >= most && suits(voter) {
			id, most = voter, p.Match
		}
	}
	return id
}

func anyVoter(uint64) bool { return true }
