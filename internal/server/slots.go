package server

import "github.com/beanpole-mq/beanpole/internal/conversation"

// Each connection of a client of this server has a slot from its accept to its close. When
// all are taken the server accepts nobody, and new clients wait in the kernel's queue of
// the listening socket. So a client that closes one connection and opens another is never
// one too many.

// full reports whether all slots are taken, with mu locked.
func (s *Server) full() bool { return s.mu.slots >= s.opt.MaxConns }

// takeSlot takes a slot for a connection that is about to be accepted. If there is none it
// reports false, and a later freeSlot makes the first loop accept.
func (s *Server) takeSlot() bool {
	s.mu.Lock()
	taken := !s.full() && !s.mu.closing
	if taken {
		s.mu.slots++
	} else {
		s.mu.wanted = !s.mu.closing
	}
	s.mu.Unlock()
	if !taken {
		s.warnFull()
	}
	return taken
}

// waitForSlot takes a slot for a connection that was accepted, as soon as there is one.
func (s *Server) waitForSlot() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.full() && !s.mu.closing {
		s.warnFull()
		s.mu.left.Wait()
	}
	if s.mu.closing {
		return conversation.ErrStopped
	}
	s.mu.slots++
	return nil
}

func (s *Server) warnFull() {
	s.fullWarning.Do(func() {
		s.log.Warn("as many connections as there may be: new ones wait until one ends", "limit", s.opt.MaxConns)
	})
}

// giveSlotBack frees the slot of a connection that has not entered.
func (s *Server) giveSlotBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freeSlot()
}

// freeSlot frees the slot of a connection that has ended, with mu locked.
func (s *Server) freeSlot() {
	s.mu.slots--
	s.mu.left.Broadcast()
	if s.mu.wanted && !s.mu.closing {
		s.mu.wanted = false
		s.mu.loops.accept()
	}
}
