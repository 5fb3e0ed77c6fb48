package benchcmd

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/cmd/beanpole/internal/command"
	"github.com/beanpole-mq/beanpole/internal/bench"
	"github.com/beanpole-mq/beanpole/internal/load"
)

// servers are the commands of the servers to compare; empty: none, or this binary.
type servers struct {
	against string
	ours    string
}

// commands returns what to start: the server that we compare with, ours, and
// the one that measures the generator's ceiling.
func (s *servers) commands() (a, b, responder bench.Server, err error) {
	self, err := os.Executable()
	if err != nil {
		return a, b, responder, fmt.Errorf("find this binary: %w", err)
	}
	b = bench.Server{Name: "beanpole", Command: withPort([]string{self, "serve"})}
	if s.ours != "" {
		b = bench.Server{Command: withPort(strings.Fields(s.ours))}
	}
	a = bench.Server{Command: withPort(strings.Fields(s.against))}
	responder = bench.Server{Name: "responder", Command: []string{self, "bench", "responder", "127.0.0.1:{port}"}}
	return a, b, responder, nil
}

// withPort makes a command that does not say where to listen use a free port.
func withPort(command []string) []string {
	if slices.ContainsFunc(command, func(arg string) bool { return strings.Contains(arg, "{port}") }) {
		return command
	}
	return append(command, "-l", "127.0.0.1", "-p", "{port}")
}

// newResponder is the process behind the generator's ceiling; nobody else has
// a use for it.
func newResponder() *cobra.Command {
	return &cobra.Command{
		Use:    "responder ADDR",
		Short:  "answer commands with the least work that looks right",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return interruptible(cmd, func(ctx context.Context, _, _ io.Writer) error {
				l, err := net.Listen("tcp", args[0])
				if err != nil {
					return command.WithCode(command.ExitSocket, err)
				}
				return load.Responder(ctx, l)
			})
		},
	}
}
