package vfs

// A WorkLock is a mutex that is held during disk operations. It is a channel, because
// package synctest does not count a goroutine that waits for a sync.Mutex as blocked.
// With a mutex, a test's fake time would stop if a disk hangs and another goroutine waits
// for the lock.
type WorkLock chan struct{}

// NewWorkLock returns an unlocked lock.
func NewWorkLock() WorkLock { return make(WorkLock, 1) }

// Lock takes the lock, and Unlock releases it.
func (l WorkLock) Lock()   { l <- struct{}{} }
func (l WorkLock) Unlock() { <-l }

// TryLock takes the lock if it is free.
func (l WorkLock) TryLock() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}
