package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/beanpole-mq/beanpole/client/admin/apitype"
)

// ailments contains the errors that prevent a member from acknowledging changes or from
// catching up. Any goroutine can use it.
type ailments struct {
	mu        sync.Mutex
	log       error // Raft's log cannot be written
	journal   error // the journal cannot store committed entries, or refuses jobs
	fetch     error // the last attempt to receive a snapshot failed
	receiving bool  // a snapshot is being received
	received  int64 // received bytes of the snapshot
}

// update changes the ailments.
func (a *ailments) update(f func(a *ailments)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(a)
}

// worst returns the error that the other members should see, or nil.
func (a *ailments) worst() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.log != nil:
		return fmt.Errorf("cluster: this member cannot write the cluster's log: %s", plain(a.log))
	case a.journal != nil:
		return fmt.Errorf("cluster: this member cannot write its journal: %s", plain(a.journal))
	case a.fetch != nil && a.receiving:
		return fmt.Errorf("cluster: this member cannot receive the queue: %s", plain(a.fetch))
	}
	return nil
}

// unready returns the reason why clients should use another member, or nil. A failing
// journal becomes a reason when the member is too far behind.
func (a *ailments) unready() error {
	a.mu.Lock()
	is := a.receiving || a.log != nil
	a.mu.Unlock()
	if is {
		return cmp.Or(a.worst(), errReceiving)
	}
	return nil
}

var errReceiving = errors.New("cluster: this member is receiving the whole queue")

// Health returns this member's report about itself. It reads the free space of the disk,
// which can block.
func (m *Member) Health() (h apitype.MemberHealth) {
	if err := m.ails.worst(); err != nil {
		h.Trouble = plain(err)
	}
	if free, err := m.opt.FS.Free(m.opt.Dir); err == nil {
		h.DiskFree = &free
	}
	m.ails.update(func(a *ailments) {
		if a.receiving {
			h.Received = a.received
		}
	})
	return h
}
