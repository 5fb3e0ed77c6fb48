package queue

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
)

func newPing() *cobra.Command {
	healthz := false
	s := new(session)
	cmd := s.command("ping", "", "check that a server answers", func(ctx context.Context, _ []string) error {
		start := time.Now()
		if healthz {
			if ok, line, err := s.Probe(ctx, "/healthz"); ok || err != nil {
				return cmp.Or(err, s.Print(map[string]string{"healthz": line}, "/healthz of the admin API: %s", line))
			}
		}
		err := s.Connect(ctx)
		if err == nil {
			err = s.Conn.Ping(ctx)
		}
		if errors.Is(err, client.ErrUnauthorized) && s.Server.GivenToken() == "" {
			err = nil // the server answers, but requires a token
		}
		if err != nil {
			return err
		}
		took := time.Since(start)
		return s.Print(map[string]float64{"milliseconds": float64(took.Microseconds()) / 1000}, "%s answers after %s", s.Server.Addr, took.Round(time.Microsecond))
	})
	cmd.Example = "  beanpole ping --addr queue.example.com:11300 --server-timeout 2s"
	cmd.Flags().BoolVar(&healthz, "healthz", false, "ask /healthz of the admin API instead, if the server has a\nlocal socket; for health checks of containers")
	return cmd
}
