package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// A session contains the options, connections and outputs of a running command.
type session struct {
	cliutil.Session
	tubes   []string // given by --tube
	states  []string // given by --state, without duplicates
	printed bool     // whether printJob has printed a job, so that a blank line must precede the next one
}

// defaultTube is the tube that a new connection uses and watches.
const defaultTube = "default"

// command returns a command that uses the protocol and can print JSON. See
// cliutil.Arguments for the syntax of args.
func (s *session) command(name, args, short string, run func(ctx context.Context, args []string) error) *cobra.Command {
	cmd := s.Command(name, args, short, run)
	s.DefineJSON(cmd)
	return cmd
}

// adminCommand returns a command that uses the admin API and can print JSON.
func (s *session) adminCommand(name, args, short, long string, run func(ctx context.Context, a *admin.Client, args []string) error) *cobra.Command {
	cmd := s.AdminCommand(name, args, short, run)
	cmd.Long = long + "\n\n" + cliutil.AdminNeeds
	s.DefineJSON(cmd)
	return cmd
}

// newSubcommand returns a subcommand that uses the admin API, and its session. Its help
// consists of the short description and more.
func newSubcommand(name, args, short, more, examples string, run func(ctx context.Context, s *session, a *admin.Client, args []string) error) (*cobra.Command, *session) {
	s := new(session)
	cmd := s.adminCommand(name, args, short, strings.TrimSpace(strings.ToUpper(short[:1])+short[1:]+".\n\n"+more), func(ctx context.Context, a *admin.Client, args []string) error {
		return run(ctx, s, a, args)
	})
	cmd.Example = examples
	return cmd, s
}

// defineTube adds --tube, an alternative to naming a tube as an argument.
func (s *session) defineTube(cmd *cobra.Command, usage string) {
	cmd.Flags().StringSliceVarP(&s.tubes, "tube", "t", nil, usage)
	cmd.ValidArgsFunction = s.completeTubes
	cmd.RegisterFlagCompletionFunc("tube", s.completeTubes) // fails only for an undefined flag
}

// tubeNames returns the tubes in the arguments and in --tube.
func (s *session) tubeNames(args []string) []string { return slices.Concat(args, s.tubes) }

var errNoTube = exit.UsageError("no tube given; name it as an argument or with --tube")

// oneTube returns the only tube in the arguments and --tube, or an error.
func (s *session) oneTube(args []string) (string, error) {
	switch names := s.tubeNames(args); {
	case len(names) == 0:
		return "", errNoTube
	case len(names) > 1:
		return "", exit.UsageError("more than one tube given: %s and %s", names[0], names[1])
	default:
		return names[0], nil
	}
}

// defineStates adds --state.
func (s *session) defineStates(cmd *cobra.Command, allowed []string, usage string) {
	list := strings.Join(allowed, ", ")
	cmd.Flags().Func("state", usage+" `STATES`: "+list+",\nseparated by commas", func(names string) error {
		for state := range strings.SplitSeq(names, ",") {
			switch {
			case !slices.Contains(allowed, state):
				return fmt.Errorf("%q is not one of: %s", state, list)
			case !slices.Contains(s.states, state):
				s.states = append(s.states, state)
			}
		}
		return nil
	})
	cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
}

var errNoState = exit.UsageError("--state is required: %s, separated by commas", strings.Join(op.IdleStates, ", "))

// idsOrTubes splits arguments into ids of jobs, which consist of digits, and names of
// tubes. Only one of the results has elements.
func (s *session) idsOrTubes(args []string) (ids, names []string, err error) {
	for _, arg := range args {
		if strings.Trim(arg, "0123456789") == "" {
			ids = append(ids, arg)
		} else {
			names = append(names, arg)
		}
	}
	names = append(names, s.tubes...)
	if len(ids) > 0 && len(names) > 0 {
		return nil, nil, exit.UsageError("%s is a job id and %s is a tube; give either ids or tubes", ids[0], names[0])
	}
	return ids, names, nil
}

// printCount prints the number of jobs, tubes or connections that a command has changed.
func (s *session) printCount(what string, n uint64) error {
	return s.Print(map[string]uint64{what: n}, "%s %d", what, n)
}

// changeJobs runs a task for up to count jobs of a tube in the given states, and returns
// the number of changed jobs. A count of zero means no limit.
func (s *session) changeJobs(ctx context.Context, a *admin.Client, task admin.StartTask, states []string, count uint32) (changed uint64, err error) {
	for _, state := range states {
		task.State = &state
		if count > 0 {
			task.Count = new(count - uint32(changed))
			if *task.Count == 0 {
				break
			}
		}
		n, err := s.runTask(ctx, a, &task)
		if changed += n; err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// printChanged prints the number of changed jobs, or returns err with that number.
func (s *session) printChanged(done string, changed uint64, err error) error {
	if err != nil {
		return fmt.Errorf("%w; %s %s", err, cliutil.Count(changed, "job"), done)
	}
	return s.printCount(done, changed)
}

// runTask runs a task on the server, shows its progress, and returns the number of jobs
// that it changed. If ctx ends, it cancels the task.
func (s *session) runTask(ctx context.Context, a *admin.Client, in *admin.StartTask) (uint64, error) {
	b := cliutil.NewProgress(s.Err)
	defer b.End()
	unstoppable := context.WithoutCancel(ctx) // for requesting the id of the task, and for canceling it
	task, err := a.StartTask(unstoppable, in)
	of := admin.OfTask{Task: task.ID}
	for err == nil && task.Ended == "" {
		b.Show(task.Done, task.Found)
		if task, err = a.GetTask(ctx, &admin.GetTask{OfTask: of, Wait: 1}); ctx.Err() != nil {
			if err := a.CancelTask(unstoppable, &of); err != nil && admin.StatusOf(err) != http.StatusConflict { // unless the task has ended
				return 0, fmt.Errorf("cancel task %d: %w", of.Task, err)
			}
			task, err = a.GetTask(unstoppable, &admin.GetTask{OfTask: of, Wait: 1})
			return task.Done, cmp.Or(err, ctx.Err())
		}
	}
	b.End()
	for _, why := range slices.Sorted(maps.Keys(task.Skipped)) {
		s.Note("skipped %s: %s", cliutil.Count(task.Skipped[why], "job"), why)
	}
	if err == nil && task.Problem != "" {
		err = fmt.Errorf("after %s: %s", cliutil.Count(task.Done, "job"), task.Problem)
	}
	return task.Done, err
}

// noteTerminal prints a note that the command reads standard input, if that is a
// terminal.
func (s *session) noteTerminal() {
	if term.IsTerminal(os.Stdin.Fd()) {
		s.Note("reading from the terminal until control-D")
	}
}

func isNotFound(err error) bool {
	return exit.Code(err) == exit.Nothing || errors.Is(err, client.ErrNotFound)
}

// ignoreNotFound returns err, or nil if err reports a missing job or tube.
func ignoreNotFound(err error) error {
	if errors.Is(err, client.ErrNotFound) {
		return nil
	}
	return err
}
