package queue

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
)

const redriveLong = `Return the buried and ready jobs of a dead tube to their origins: the tubes from which a policy
with exhausted = "move" moved them. The jobs become ready and, as after a kick, have all their
attempts again. Jobs that reached the dead tube in another way have no origin: they stay, and
the command reports their number, unless --to names a tube for all jobs.

Origins are in the journal and on all members of a cluster. An import drops them.`

func newRedrive() *cobra.Command {
	var to string
	var count uint32
	s := new(session)
	cmd := s.adminCommand("redrive", "TUBE", "return dead jobs to the tubes they came from", redriveLong, func(ctx context.Context, a *admin.Client, args []string) error {
		in := admin.StartTask{OfTube: admin.OfTube{Tube: args[0]}, Do: "redrive"}
		if to != "" {
			in.To = &to
		}
		redriven, err := s.changeJobs(ctx, a, in, []string{"buried", "ready"}, count)
		return s.printChanged("redriven", redriven, err)
	})
	cmd.Example = "  beanpole redrive mail.dead\n  beanpole redrive failed --to mail --count 10"
	fs := cmd.Flags()
	fs.StringVar(&to, "to", "", "move all jobs to `TUBE`, regardless of their origin")
	fs.Uint32VarP(&count, "count", "n", 0, "return at most `N` jobs; 0 is unlimited")
	cmd.ValidArgsFunction = s.completeTubes
	cmd.RegisterFlagCompletionFunc("to", s.completeTubes) // fails only for an undefined flag
	return cmd
}
