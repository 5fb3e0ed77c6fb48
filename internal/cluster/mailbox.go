package cluster

import "sync"

// A mailbox has what the raft loop is to do, in order. Whoever posts does not wait.
type mailbox struct {
	mu    sync.Mutex
	calls []func()
	spare []func()
	wake  chan struct{} // has something if the loop is to look
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

func (m *mailbox) post(call func()) {
	m.mu.Lock()
	m.calls = append(m.calls, call)
	m.mu.Unlock()
	signal(m.wake)
}

// take returns what was posted. The slice is the caller's until it takes again.
func (m *mailbox) take() []func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls := m.calls
	m.calls, m.spare = m.spare[:0], calls
	return calls
}

// signal makes sure that somebody who waits for the channel comes once more.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
