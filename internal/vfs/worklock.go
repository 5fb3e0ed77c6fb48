package vfs

// A WorkLock is a mutex that is held while the disk works. It is a channel because package synctest counts only who waits for such a
// one as waiting: else time would stand still in a test while a disk hangs and somebody waits for the lock.
type WorkLock chan struct{}

// NewWorkLock returns a lock that nobody has.
func NewWorkLock() WorkLock { return make(WorkLock, 1) }

// Lock takes the lock, and Unlock gives it back.
func (l WorkLock) Lock()   { l <- struct{}{} }
func (l WorkLock) Unlock() { <-l }

// TryLock takes the lock if nobody has it.
func (l WorkLock) TryLock() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}
