//go:build unix && !linux

package vfs

// The Sync of package os is fsync, and on macOS F_FULLFSYNC.

// Preallocate writes zeros.
func (f osFile) Preallocate(size int64) error {
	old, _, err := f.Stat()
	if err != nil || old >= size {
		return err
	}
	return f.fillZeros(old, size)
}
