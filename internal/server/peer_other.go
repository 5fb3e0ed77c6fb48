//go:build !linux && !darwin && !freebsd

package server

import "github.com/beanpole-mq/beanpole/internal/access"

// socketUser returns an unknown user, because this system does not report it.
func socketUser(int) access.UnixUser { return access.UnixUser{} }
