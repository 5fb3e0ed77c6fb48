//go:build unix

package vfs

import "os"

// OpenDevice opens what OpenWrite refuses.
func OpenDevice(name string) (File, error) {
	return openAny(name, os.O_RDWR)
}
