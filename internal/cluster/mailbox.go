package cluster

import "sync"

// A mailbox has what the raft loop is to do, in order. Whoever posts does not wait.
type mailbox struct {
	mu      sync.Mutex
	letters []func()
	spare   []func()
	wake    chan struct{} // has something if the loop is to look
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

func (m *mailbox) post(letter func()) {
	m.mu.Lock()
	m.letters = append(m.letters, letter)
	m.mu.Unlock()
	signal(m.wake)
}

// take returns all letters. They are the caller's until the next call.
func (m *mailbox) take() []func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	letters := m.letters
	m.letters, m.spare = m.spare[:0], letters
	return letters
}

// signal makes sure that somebody who waits for the channel comes once more.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
