package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// dial opens a network connection, encrypted if the options require it.
func dial(ctx context.Context, addr *address, opt *Options) (net.Conn, error) {
	nc, err := opt.Dial(ctx, addr.network, addr.addr)
	if err != nil || opt.TLS == nil {
		return nc, err
	}
	config := opt.TLS
	if config.ServerName == "" && !config.InsecureSkipVerify {
		config = config.Clone()
		config.ServerName = addr.host
	}
	encrypted := tls.Client(nc, config)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return encrypted, nil
}

var errDialTimeout = fmt.Errorf("connecting took too long: %w", os.ErrDeadlineExceeded)

// connect opens a new connection to the first address that answers.
func (c *Conn) connect(ctx context.Context) (err error) {
	c.lasted = 0
	first := c.current.Load()
	for next := range uint32(len(c.addrs)) {
		failed := c.connectTo(ctx, &c.addrs[(first+next)%uint32(len(c.addrs))])
		switch {
		case failed == nil:
			c.current.CompareAndSwap(first, first+next)
			return nil
		case !errors.Is(failed, ErrDisconnected):
			return failed
		case err == nil:
			err = failed
		default:
			err = fmt.Errorf("%w; %w", err, failed)
		}
	}
	return err
}

// connectTo opens a new connection and restores the state of the previous one.
func (c *Conn) connectTo(ctx context.Context, addr *address) error {
	if c.opt.DialTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.opt.DialTimeout/time.Duration(len(c.addrs)), errDialTimeout)
		defer cancel()
	}
	nc, err := dial(ctx, addr, &c.opt)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errDialTimeout) {
			return cause
		}
		return fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	if err := c.setNetConn(nc); err != nil {
		return err
	}
	s := newStream(nc, c.opt.Timeout)
	if err := c.restore(ctx, s); err != nil {
		s.close()
		if errors.Is(err, errDialTimeout) {
			return fmt.Errorf("%w: %w", ErrDisconnected, err)
		}
		return c.closedOr(err)
	}
	c.stream = s
	return nil
}

// setNetConn stores the network connection for Close.
func (c *Conn) setNetConn(nc net.Conn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		nc.Close()
		return ErrClosed
	}
	c.mu.nc = nc
	return nil
}

// restore sends the token, and watches the same tubes again.
func (c *Conn) restore(ctx context.Context, s *stream) error {
	if c.opt.Token != "" {
		if err := c.authenticate(ctx, s); err != nil {
			return err
		}
	}
	if refused, err := setTubes(ctx, s, watchCommands([]string{defaultTube}, c.watched)); err != nil || refused != nil {
		return cmp.Or(err, refused)
	}
	if !c.opt.Facts {
		return nil
	}
	return s.ask(ctx, wire.Command{Op: wire.Want, Count: uint32(askedFacts)})
}

// authenticate sends the token and waits for the reply, because a server that refuses the
// token refuses all other commands.
func (c *Conn) authenticate(ctx context.Context, s *stream) error {
	cmd := wire.Command{Op: wire.Auth, Text: []byte(c.opt.Token)}
	var r wire.Reply
	if _, err := s.exchange(ctx, &cmd, 0, &r); err != nil {
		return err
	}
	if r.Kind != wire.Authenticated && r.Kind != wire.OK {
		return fmt.Errorf("auth: %w", replyError(&r))
	}
	return nil
}

// setTubes sends the commands use, watch and ignore in one round trip. refused is the
// first refusal, an *Error without the address; the connection is still usable after it.
func setTubes(ctx context.Context, s *stream, cmds []wire.Command) (refused, err error) {
	if len(cmds) == 0 {
		return nil, nil
	}
	err = s.pipeline(ctx, &batch{
		n:      len(cmds),
		append: func(dst []byte, i int) []byte { return wire.AppendCommand(dst, &cmds[i]) },
		reply: func(i int, r *wire.Reply) error {
			if r.Kind != wire.Using && r.Kind != wire.Watching && refused == nil {
				refused = &Error{Verb: cmds[i].Op.String(), Tube: string(cmds[i].Tube), Err: replyError(r)}
			}
			return nil
		},
	})
	return refused, err
}

// watchCommands returns the commands that change the watched tubes from have to want. The
// connection watches at least one tube at any time.
func watchCommands(have, want []string) (cmds []wire.Command) {
	for _, tube := range want {
		if !slices.Contains(have, tube) {
			cmds = append(cmds, wire.Command{Op: wire.Watch, Tube: []byte(tube)})
		}
	}
	for _, tube := range have {
		if !slices.Contains(want, tube) {
			cmds = append(cmds, wire.Command{Op: wire.Ignore, Tube: []byte(tube)})
		}
	}
	return cmds
}
