package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
)

func newPing() *cobra.Command {
	cmd := newCommand("ping", "", "check that a server answers", func(ctx context.Context, s *session, _ []string) error {
		start := time.Now()
		err := s.Connect(ctx)
		if err == nil {
			err = s.Conn.Ping(ctx)
		}
		if errors.Is(err, client.ErrUnauthorized) && s.Server.GivenToken() == "" {
			err = nil // it is there, and wants to know who asks
		}
		if err != nil {
			return err
		}
		took := time.Since(start)
		if s.JSON {
			return s.PrintJSON(map[string]float64{"milliseconds": float64(took.Microseconds()) / 1000})
		}
		_, err = fmt.Fprintf(s.Out, "%s answers after %s\n", s.Server.Addr, took.Round(time.Microsecond))
		return err
	})
	cmd.Example = "  beanpole ping --addr queue.example.com:11300 --server-timeout 2s"
	return cmd
}
