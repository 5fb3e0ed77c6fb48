package vfs

// A WorkLock is a mutex that is held while the disk works. It is a channel, because package
// synctest does not count a goroutine that waits for a sync.Mutex as blocked: the fake time
// of a test would stand still while a disk hangs and another goroutine waits for the lock.
type WorkLock chan struct{}

// NewWorkLock returns an unlocked lock.
func NewWorkLock() WorkLock { return make(WorkLock, 1) }

// Lock takes the lock, and Unlock gives it back.
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
