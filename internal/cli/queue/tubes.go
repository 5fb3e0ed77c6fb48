package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/cli/top"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/health"
)

// A tube is a row in the list of tubes, and its JSON. In a list of a single tube, it
// contains the reason why the jobs wait, and the settings that differ from their
// defaults.
type tube struct {
	admin.Tube
	Why    string `json:"why,omitempty"`
	Policy string `json:"policy,omitempty"`
}

// A plainTube is the JSON of a tube whose values come from the protocol. Its nil members
// hide the members of tube that the protocol lacks.
type plainTube struct {
	*tube
	BodyBytes   any `json:"body_bytes,omitempty"`
	OldestReady any `json:"oldest_ready,omitempty"`
	Timeouts    any `json:"timeouts,omitempty"`
	Releases    any `json:"releases,omitempty"`
	Buries      any `json:"buries,omitempty"`
	Queue       any `json:"queue,omitempty"`
	Work        any `json:"work,omitempty"`
}

// tubeOf returns a tube with the values that are available through the protocol.
func tubeOf(st *client.TubeStats) admin.Tube {
	return admin.Tube{
		Name: st.Name, Jobs: admin.JobCounts{Ready: st.JobsReady, Reserved: st.JobsReserved, Delayed: st.JobsDelayed, Buried: st.JobsBuried},
		Urgent: st.JobsUrgent, Waiting: st.Waiting, Watching: st.Watching, Using: st.Using, TotalJobs: st.TotalJobs, Deletes: st.CmdDelete,
		Pauses: st.CmdPauseTube, Pause: seconds(st.Pause), PauseLeft: seconds(st.PauseLeft),
	}
}

const tubesLong = `List all tubes, or the given tubes, with their numbers of jobs. For a single tube, the command
prints the reason why its jobs wait. A name can be a pattern: * stands for any characters, ?
for one.

The command uses the admin API of a beanpole server if it finds one. Otherwise it uses the
protocol, which has no bytes, ages, timeouts, releases and buries; the reason then omits
policies and workers. --json prints all values.`

func newTubes() *cobra.Command {
	s := new(session)
	cmd := s.command("tubes", "[TUBE...]", "list the tubes with their jobs", func(ctx context.Context, args []string) error {
		tubes, plain, err := s.loadTubes(ctx, s.tubeNames(args))
		if err != nil {
			return err
		}
		return s.printTubes(tubes, plain)
	})
	cmd.Long = tubesLong
	cmd.Example = "  beanpole tubes 'mail.*'\n  beanpole tubes --json | jq 'select(.oldest_ready > 60)'"
	s.defineTube(cmd, "list `TUBES`, in addition to the arguments")
	s.DefineAdmin(cmd)
	return cmd
}

// loadTubes returns the tubes that match names, or all tubes, sorted by name. It uses the
// admin API if the server offers it. Otherwise, it uses the protocol, and plain is true.
func (s *session) loadTubes(ctx context.Context, names []string) (_ []tube, plain bool, err error) {
	a, err := s.FindAdminClient()
	if err != nil {
		return nil, false, err
	}
	alone := len(names) == 1 && !isPattern(names[0])
	if a != nil {
		tubes, err := findTubes(ctx, a, names)
		if err == nil && alone {
			var found admin.Explanation
			found, err = a.ExplainTube(ctx, &admin.OfTube{Tube: tubes[0].Name})
			tubes[0].Why, tubes[0].Policy = found.Text, found.Policy
		}
		if err == nil || s.GivenAdmin() != "" {
			return tubes, false, err
		}
	}
	if err := s.Connect(ctx); err != nil {
		return nil, false, err
	}
	all := names
	if len(names) == 0 || slices.ContainsFunc(names, isPattern) {
		if all, err = s.Conn.ListTubes(ctx); err != nil {
			return nil, false, err
		}
	}
	stats, err := statsOf(ctx, s.Conn, all)
	tubes := make([]tube, len(stats))
	for i, st := range stats {
		tubes[i] = tube{Tube: tubeOf(st)}
	}
	if err == nil {
		tubes, err = matching(tubes, names)
	}
	if err == nil && alone {
		one := top.HealthOf(&tubes[0].Tube)
		tubes[0].Why, _ = one.Why()
	}
	return tubes, true, err
}

// findTubes returns the tubes that match names, or all tubes, from the admin API.
func findTubes(ctx context.Context, a *admin.Client, names []string) (tubes []tube, err error) {
	for in, more := (admin.ListTubes{Limit: 10_000}), true; more; more = in.Cursor != "" {
		page, err := a.ListTubes(ctx, &in)
		if err != nil {
			return nil, err
		}
		for i := range page.Tubes {
			tubes = append(tubes, tube{Tube: page.Tubes[i]})
		}
		in.Cursor = page.Next
	}
	return matching(tubes, names)
}

// matching returns the tubes that match one of names, or all tubes if names is empty,
// sorted by name. A name or pattern without a matching tube is an error.
func matching(all []tube, names []string) (tubes []tube, err error) {
	used := make([]bool, len(names))
	for _, t := range all {
		wanted := len(names) == 0
		for i, name := range names {
			if access.Match(name, t.Name) {
				wanted, used[i] = true, true
			}
		}
		if wanted {
			tubes = append(tubes, t)
		}
	}
	if i := slices.Index(used, false); i >= 0 {
		return nil, exit.NotFoundError("no tube %s", names[i])
	}
	slices.SortFunc(tubes, func(a, b tube) int { return strings.Compare(a.Name, b.Name) })
	return tubes, nil
}

// isPattern reports whether a name is a pattern. Names of tubes contain no * or ?.
func isPattern(name string) bool { return strings.ContainsAny(name, "*?") }

// statsOf returns the statistics of tubes from the protocol, without the tubes that do not
// exist or that the client must not see.
func statsOf(ctx context.Context, c *client.Conn, names []string) (tubes []*client.TubeStats, err error) {
	stats, err := c.StatsTubeMany(ctx, names)
	batch, ok := errors.AsType[*client.BatchError](err)
	if err != nil && !ok {
		return nil, err
	}
	for i, st := range stats {
		if st == nil {
			if err := batch.Errs[i]; !errors.Is(err, client.ErrNotFound) && !errors.Is(err, client.ErrUnauthorized) {
				return nil, err
			}
			continue
		}
		if st.Name == defaultTube && st.Watching > 0 {
			st.Watching-- // this connection
		}
		tubes = append(tubes, st)
	}
	return tubes, nil
}

func (s *session) printTubes(tubes []tube, plain bool) error {
	if plain && s.JSON {
		for i := range tubes {
			if err := s.PrintJSON(plainTube{tube: &tubes[i]}); err != nil {
				return err
			}
		}
		return nil
	}
	err := cliutil.PrintList(&s.Session, tubes, "TUBE:12 READY RESERVED DELAYED BURIED WAITING TOTAL PAUSED", func(t *tube) []any {
		paused := ""
		if left := cliutil.OfSeconds(t.PauseLeft); left >= health.Endless {
			paused = "yes"
		} else if left > 0 {
			paused = left.String()
		}
		return []any{t.Name, t.Jobs.Ready, t.Jobs.Reserved, t.Jobs.Delayed, t.Jobs.Buried, t.Waiting, t.TotalJobs, paused}
	})
	if err == nil && !s.JSON && len(tubes) == 1 && tubes[0].Why != "" {
		_, err = fmt.Fprintf(s.Out, "\n%s: %s\n", cliutil.Line(tubes[0].Name), cliutil.Line(tubes[0].Why))
		if err == nil && tubes[0].Policy != "" {
			_, err = fmt.Fprintln(s.Out, "policy:", cliutil.Line(tubes[0].Policy))
		}
	}
	return err
}
