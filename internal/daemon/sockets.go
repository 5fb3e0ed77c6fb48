package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"reflect"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/beanpole-mq/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// A listening is a listening socket with the requirements for its clients.
type listening struct {
	net.Listener
	terms config.ListenerOptions
}

// openSockets returns the sockets that a service manager has passed with systemd's
// protocol. If it has passed none, openSockets opens the sockets of the endpoints.
func openSockets(ctx context.Context, p *plan) ([]listening, error) {
	opt, endpoints, log := p.opt, p.endpoints, p.log
	if files := activation.Files(true); len(files) > 0 {
		if len(opt.Listen) > 0 || opt.Port != server.DefaultPort || len(opt.Tables.Listeners) > 0 {
			log.Warn("ignoring options -l and -p, and the configured listeners: the service manager passes the sockets", "sockets", len(files))
		}
		for _, e := range endpoints {
			if !reflect.DeepEqual(e.Terms, opt.Terms) {
				return nil, exit.UsageError("%s: [[listener]] settings have no effect on sockets from the service manager; "+
					"set them at the top of the file, for all sockets", opt.File)
			}
		}
		return inherited(files, opt.Terms)
	}
	var all []listening
	for _, e := range endpoints {
		l, err := p.listen(ctx, e)
		switch {
		case err == nil:
			all = append(all, l)
		case !e.Optional:
			closeAll(all)
			return nil, err
		case errors.Is(err, syscall.EADDRINUSE):
			log.Warn("another program listens on ::1; clients of localhost might reach it first", "port", e.Port)
		}
	}
	return all, nil
}

// listen opens a listener. The file of a Unix socket belongs to the user of -u.
func (p *plan) listen(ctx context.Context, e config.Endpoint) (listening, error) {
	l, err := server.Listen(ctx, e.Address, p.opt.UnixMode)
	if err != nil {
		return listening{}, exit.WithCode(exit.Socket, fmt.Errorf("%w%s", err, hint(err)))
	}
	if e.Path != "" {
		if err := p.account.own(e.Path); err != nil {
			l.Close()
			return listening{}, err
		}
	}
	return listening{l, e.Terms}, nil
}

// hint returns advice about a socket that could not be opened.
func hint(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return " (if another beanstalkd or beanpole is running, choose a port with -p or an address with -l)"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return " (no network interface of this machine has that address; -l 0.0.0.0 listens on all)"
	case errors.Is(err, syscall.EROFS):
		return " (the package's unit allows the server to create sockets only in /run/beanpole)"
	case errors.Is(err, syscall.EACCES):
		return " (start as root and add -u USER, or choose another place)"
	}
	return ""
}

// inherited returns the listeners of sockets from the service manager.
func inherited(files []*os.File, terms config.ListenerOptions) (all []listening, err error) {
	for _, f := range files {
		defer f.Close() // a listener has its own copy of the descriptor
		accepts, err := syscall.GetsockoptInt(int(f.Fd()), syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN)
		var l net.Listener
		if err == nil && accepts != 0 {
			l, _ = net.FileListener(f)
		}
		if l == nil {
			closeAll(all)
			return nil, exit.WithCode(exit.Socket, fmt.Errorf("socket %s from the service manager: it is not a listening TCP or unix stream socket", f.Name()))
		}
		all = append(all, listening{l, terms})
	}
	return all, nil
}

// describe returns an address in the form that the option -l accepts.
func describe(a net.Addr) string {
	if a.Network() == "unix" {
		return "unix:" + a.String()
	}
	return a.String()
}

func closeAll(listeners []listening) {
	for _, l := range listeners {
		l.Close()
	}
}

// notify sends a state to the service manager, if there is one.
func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("cannot notify the service manager", "state", state, "err", err)
	}
}
