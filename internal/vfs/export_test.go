//go:build unix

package vfs

import "os"

// OpenDevice opens what OpenWrite refuses.
func OpenDevice(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return newFile(f)
}
