//go:build !linux

package load

import (
	"context"
	"errors"
)

// epollClient is never reached: Options.check refuses it.
func (r *run) epollClient(conns []*conn) client {
	return func(context.Context) error {
		closeAll(conns)
		return errors.ErrUnsupported
	}
}
