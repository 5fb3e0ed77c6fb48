//go:build unix && !linux

package vfs

// Sync is the Sync of package os: fsync, and on macOS F_FULLFSYNC.
func (f osFile) Sync() error { return f.File.Sync() }

func (f osFile) syncDir() error { return f.File.Sync() }

// Preallocate writes zeros.
func (f osFile) Preallocate(size int64) error {
	old, _, err := f.Stat()
	if err != nil || old >= size {
		return err
	}
	return f.fillZeros(old, size)
}
