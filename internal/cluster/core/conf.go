package core

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// ErrChanging means that another change of the configuration is in progress.
var ErrChanging = errors.New("core: another change of the members is in progress")

// ProposeConf proposes a change of the members' roles; see
// [raft.RawNode.ProposeConfChange]. It refuses a second change while a change is in
// progress: Raft would replace the second change with an entry without data, which has a
// meaning in this package.
func (c *Core) ProposeConf(epoch uint64, cc *raftpb.ConfChangeV2) error {
	switch {
	case epoch == 0 || epoch != c.lead.Epoch:
		return ErrDeposed
	case c.confAsk || len(c.node.Status().Config.Voters[1]) > 0:
		return ErrChanging
	}
	err := c.node.ProposeConfChange(cc)
	c.confAsk = err == nil
	return err
}

// Conf returns the members' roles after the last applied change of configuration, and the
// index of that change.
func (c *Core) Conf() (*raftpb.ConfState, uint64) { return c.conf, c.confDone }

// didChange passes a change of configuration to Raft, once.
func (c *Core) didChange(e *raftpb.Entry) {
	if e.GetIndex() <= c.confDone {
		return
	}
	cc := confChange(e)
	c.confDone, c.confAsk = e.GetIndex(), false
	c.conf = c.node.ApplyConfChange(cc)
	if c.lead.Epoch != 0 && c.lease.underWay {
		// The change might have removed the member whose answer the question awaits. If a
		// single voter is left, Raft would wait for the answer forever.
		c.ask(c.lease.askedAt)
	}
	context := cc.GetContext()
	if before := c.work.Roles; len(context) == 0 && before != nil {
		context = before.Context
	}
	c.work.Roles = &Roles{Conf: c.conf, Index: e.GetIndex(), Context: context}
}

// confChange decodes the change of configuration in an entry.
func confChange(e *raftpb.Entry) *raftpb.ConfChangeV2 {
	if e.GetType() == raftpb.EntryConfChange { // Raft writes the older form if it suffices
		cc := new(raftpb.ConfChange)
		mustUnmarshal(e, cc)
		return cc.AsV2()
	}
	cc := new(raftpb.ConfChangeV2)
	mustUnmarshal(e, cc)
	return cc
}

func mustUnmarshal(e *raftpb.Entry, m proto.Message) {
	if err := proto.Unmarshal(e.GetData(), m); err != nil {
		panic(fmt.Sprintf("core: entry %d: %v", e.GetIndex(), err)) // the checksum of the entry was correct
	}
}
