//go:build !linux

package load

func newDriver(bool) (driver, error) { return newGoroutines(), nil }
