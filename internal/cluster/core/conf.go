package core

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// ErrChanging means that another change of the configuration is under way.
var ErrChanging = errors.New("core: another change of the members is under way")

// ProposeConf proposes a change of the members' roles; see
// [raft.RawNode.ProposeConfChange]. One change is under way at a time. (Raft would make
// an entry without data of a second one, and those have a meaning here.)
func (c *Core) ProposeConf(epoch uint64, cc *raftpb.ConfChangeV2) error {
	switch {
	case epoch == 0 || epoch != c.epoch:
		return ErrDeposed
	case c.confAsk || len(c.node.Status().Config.Voters[1]) > 0:
		return ErrChanging
	}
	err := c.node.ProposeConfChange(cc)
	c.confAsk = err == nil
	return err
}

// Conf returns the roles of the members after the last change of configuration that was
// applied, and its index.
func (c *Core) Conf() (*raftpb.ConfState, uint64) { return c.conf, c.confDone }

// didChange does what a change of configuration means to Raft, once.
func (c *Core) didChange(e *raftpb.Entry) {
	if e.GetIndex() <= c.confDone {
		return
	}
	cc := confChange(e)
	c.confDone, c.confAsk = e.GetIndex(), false
	c.conf = c.node.ApplyConfChange(cc)
	if c.epoch != 0 && c.lease.underWay {
		// The member that was to answer the question may have been removed, and with a
		// single voter left, Raft would wait for the answer for ever.
		c.ask(c.lease.askedAt)
	}
	context := cc.GetContext()
	if before := c.work.Roles; len(context) == 0 && before != nil {
		context = before.Context
	}
	c.work.Roles = &Roles{Conf: c.conf, Index: e.GetIndex(), Context: context}
}

// confChange returns the change of configuration of an entry.
func confChange(e *raftpb.Entry) *raftpb.ConfChangeV2 {
	if e.GetType() == raftpb.EntryConfChange { // Raft writes the older form where that suffices
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
		panic(fmt.Sprintf("core: entry %d: %v", e.GetIndex(), err)) // its checksum was right
	}
}
