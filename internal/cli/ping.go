package cli

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/adminsocket"
	"github.com/beanpole-mq/beanpole/internal/certs"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/config"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// addPID adds an option to the command ping for health checks of containers, which have
// no access to the configuration of their server.
func addPID(ping *cobra.Command) {
	pid := ping.Flags().Uint("pid", 0, "ping the server with the process id `PID` at the address\nin its configuration (Linux); if it is at max-connections,\nuse its admin socket")
	var socket string
	ping.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if *pid == 0 {
			return nil
		}
		addr, at, err := addressOf(*pid)
		if err != nil {
			return exit.UsageError("--pid %d: %w", *pid, err)
		}
		socket = at
		return cmd.Flags().Set("addr", addr)
	}
	run := ping.RunE
	ping.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if err == nil || socket == "" || !ready(cmd.Context(), socket) {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), "the server answers on its admin socket only; it might be at max-connections")
		return nil
	}
}

// ready reports whether the server with an admin socket executes commands.
func ready(ctx context.Context, socket string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	server := cliutil.Session{Server: cliutil.Connection{Addr: "unix:" + socket}, Admin: "unix:" + socket}
	ready, _, err := server.Ready(ctx)
	return ready && err == nil
}

// addressOf returns the address of a server and the path of its admin socket, which can
// be empty. It reads the command line of the process, and our environment, which must be
// the server's.
func addressOf(pid uint) (addr, socket string, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return "", "", err
	}
	words := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	// Another program, such as tini, can start the program.
	at := slices.IndexFunc(words, func(w string) bool { return filepath.Base(w) == "beanpole" })
	if at < 0 {
		return "", "", fmt.Errorf("%q is no beanpole", words)
	}
	args := words[at+1:]
	if len(args) > 0 && args[0] == "serve" {
		args = args[1:]
	}
	opt := config.Default()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	opt.Define(flags)
	if err := flags.Parse(args); err != nil {
		return "", "", err
	}
	s, err := config.NewCommandLine(opt, flags).Read()
	if err != nil {
		return "", "", err
	}
	endpoints, err := s.Options.Endpoints()
	if err != nil {
		return "", "", err
	}
	plain := func(e config.Endpoint) bool { return e.Terms.TLS == certs.Files{} && e.Port != "0" }
	e := endpoints[max(0, slices.IndexFunc(endpoints, plain))]
	if socket = s.Options.Admin.Socket; socket == "" {
		socket = adminsocket.Find(e.Port, s.Options.Journal.Dir)
	}
	if e.Path != "" {
		return e.String(), socket, nil
	}
	host := e.Host
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() { // includes IPv4: see server.Listen
		host = server.DefaultHost
	}
	return net.JoinHostPort(host, e.Port), socket, nil
}
