//go:build !linux

package load

import (
	"context"
	"net"
)

func (r *responder) serve(ctx context.Context, l net.Listener) error {
	return r.serveGoroutines(ctx, l)
}
