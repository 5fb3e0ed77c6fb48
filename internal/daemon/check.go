package daemon

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/beanpole-mq/beanpole/internal/cli/kit"
	"github.com/beanpole-mq/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// checkPorts looks the ports up that are names of services.
func checkPorts(opt *config.Options, endpoints []config.Endpoint) error {
	addrs := make([]server.Address, 0, len(endpoints)+1)
	for _, e := range endpoints {
		addrs = append(addrs, e.Address)
	}
	if opt.Admin.Addr != "" {
		addr, err := opt.Admin.Address()
		if err != nil {
			return err
		}
		addrs = append(addrs, addr)
	}
	for _, a := range addrs {
		if a.Path != "" {
			continue
		}
		if _, err := net.LookupPort("tcp", a.Port); err != nil {
			return kit.UsageError("listen on %s: unknown service %q (want the number of a port, or a name from /etc/services)", a, a.Port)
		}
	}
	return nil
}

// Check looks for what is wrong as far as it can be known without opening
// sockets or files.
func Check(s *config.Settings, w io.Writer) error {
	opt := s.Options
	endpoints, err := opt.Endpoints()
	if err != nil {
		return err
	}
	if err := checkPorts(opt, endpoints); err != nil {
		return err
	}
	if _, err := opt.QueueLimits(); err != nil {
		return err
	}
	sec, err := newSecurity(opt, endpoints, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if _, err := lookupAccount(opt.User); err != nil {
		return err
	}
	if dir := opt.Journal.Dir; dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return kit.WithCode(kit.ExitJournal, fmt.Errorf("journal: %s is not a directory (it must exist)", dir))
		}
	}
	others, err := readOthers(opt)
	if err != nil {
		return err
	}
	for _, warning := range append(certificateWarnings(sec.expiries(), time.Now()), otherWarnings(opt, others)...) {
		fmt.Fprintln(w, "warning:", warning)
	}
	fmt.Fprintln(w, "the configuration is good")
	return nil
}
