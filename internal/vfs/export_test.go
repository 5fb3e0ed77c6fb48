//go:build unix

package vfs

import "os"

// OpenDevice opens a device, which OpenWrite refuses.
func OpenDevice(name string) (File, error) {
	return openAny(name, os.O_RDWR)
}
