package cli

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/certs"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
	"github.com/beanpole-mq/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// addPID gives the command ping an option for the health check of a container, which does not
// know how its server is configured.
func addPID(ping *cobra.Command) {
	pid := ping.Flags().Uint("pid", 0, "ask the server that is the process `PID`, where its\nconfiguration says, in place of --addr; on Linux")
	ping.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if *pid == 0 {
			return nil
		}
		addr, err := addressOf(*pid)
		if err != nil {
			return kit.UsageError("--pid %d: %w", *pid, err)
		}
		return cmd.Flags().Set("addr", addr)
	}
}

// addressOf returns where a server listens, by its command line, and the environment, which must
// be ours.
func addressOf(pid uint) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return "", err
	}
	words := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	// Before the program there may be another that starts it, such as tini.
	at := slices.IndexFunc(words, func(w string) bool { return filepath.Base(w) == "beanpole" })
	if at < 0 {
		return "", fmt.Errorf("%q is no beanpole", words)
	}
	args := words[at+1:]
	if len(args) > 0 && args[0] == "serve" {
		args = args[1:]
	}
	opt := config.Default()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	opt.Define(flags)
	if err := flags.Parse(args); err != nil {
		return "", err
	}
	s, err := config.NewCommandLine(opt, flags).Read()
	if err != nil {
		return "", err
	}
	endpoints, err := s.Options.Endpoints()
	if err != nil {
		return "", err
	}
	plain := func(e config.Endpoint) bool { return e.Terms.TLS == certs.Files{} && e.Port != "0" }
	e := endpoints[max(0, slices.IndexFunc(endpoints, plain))]
	if e.Path != "" {
		return e.String(), nil
	}
	host := e.Host
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() { // IPv4 too: see server.Listen
		host = server.DefaultHost
	}
	return net.JoinHostPort(host, e.Port), nil
}
