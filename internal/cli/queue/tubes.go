package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
	"github.com/beanpole-mq/beanpole/internal/health"
)

// A tube is a row of the list of tubes, and its JSON. For a single tube, it has the
// reason why its jobs wait, and the settings that differ from their defaults.
type tube struct {
	admin.Tube
	Why    string `json:"why,omitempty"`
	Policy string `json:"policy,omitempty"`
}

// tubeOf returns a tube with the values that the protocol has.
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

The command uses the admin API of a beanpole if it finds one. Otherwise it uses the protocol,
which lacks the columns of --wide, and policies and workers in the reason.`

// tubesOptions are the options of the command tubes.
type tubesOptions struct {
	sort  string
	wide  bool
	limit uint
}

func newTubes() *cobra.Command {
	var o tubesOptions
	s := new(session)
	cmd := s.command("tubes", "[TUBE...]", "list the tubes with their jobs", func(ctx context.Context, args []string) error {
		if _, ok := tubeOrders[o.sort]; !ok {
			return exit.UsageError("--sort is one of: %s", strings.Join(slices.Sorted(maps.Keys(tubeOrders)), ", "))
		}
		tubes, err := s.loadTubes(ctx, s.tubeNames(args), o.wide || o.sort == "bytes" || o.sort == "age")
		if err != nil {
			return err
		}
		tubes, more := o.pick(tubes)
		if err := s.printTubes(tubes, o.wide); err != nil {
			return err
		}
		if more > 0 {
			s.Note("%s left out by --limit", cliutil.Count(more, "tube"))
		}
		return nil
	})
	cmd.Long = tubesLong
	cmd.Example = "  beanpole tubes --sort buried --limit 10\n  beanpole tubes 'mail.*'"
	s.defineTube(cmd, "list `TUBES`, in addition to the arguments")
	f := cmd.Flags()
	f.StringVar(&o.sort, "sort", "name", "sort by `COLUMN`: name, ready, reserved, delayed, buried,\nwaiting, total, bytes or age; numbers sort descending\n(default name)")
	f.BoolVarP(&o.wide, "wide", "w", false, "also show timeouts, releases, buries, bytes of bodies, and\nthe age of the next job")
	f.UintVarP(&o.limit, "limit", "n", 0, "list at most `N` tubes; 0 is unlimited")
	s.DefineAdmin(cmd)
	cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(slices.Sorted(maps.Keys(tubeOrders)), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// loadTubes returns the tubes that match names, or all. It uses the admin API if needed
// is true or a server offers the API. Otherwise it uses the protocol.
func (s *session) loadTubes(ctx context.Context, names []string, needed bool) ([]tube, error) {
	find := s.FindAdminClient
	if needed {
		find = s.AdminClient
	}
	a, err := find()
	if err != nil {
		return nil, err
	}
	alone := len(names) == 1 && !isPattern(names[0])
	if a != nil {
		tubes, err := findTubes(ctx, a, names)
		if err == nil && alone {
			var found admin.Explanation
			found, err = a.ExplainTube(ctx, &admin.OfTube{Tube: tubes[0].Name})
			tubes[0].Why, tubes[0].Policy = found.Text, found.Policy
		}
		if err == nil || needed || s.Admin != "" {
			return tubes, err
		}
	}
	if err := s.Connect(ctx); err != nil {
		return nil, err
	}
	all := names
	if len(names) == 0 || slices.ContainsFunc(names, isPattern) {
		if all, err = s.Conn.ListTubes(ctx); err != nil {
			return nil, err
		}
	}
	stats, hidden, err := statsOf(ctx, s.Conn, all)
	if hidden > 0 && len(names) == 0 {
		s.Note("%s hidden: the server refuses their statistics", cliutil.Count(hidden, "tube"))
	}
	tubes := make([]tube, len(stats))
	for i, st := range stats {
		tubes[i] = tube{Tube: tubeOf(st)}
	}
	if err == nil {
		tubes, err = matching(tubes, names)
	}
	if err == nil && alone {
		t := &tubes[0]
		one := health.Tube{
			Name: t.Name, Ready: t.Jobs.Ready, Reserved: t.Jobs.Reserved, Delayed: t.Jobs.Delayed, Buried: t.Jobs.Buried,
			Watching: t.Watching, Waiting: t.Waiting, PauseLeft: ofSeconds(t.PauseLeft),
		}
		t.Why, _ = one.Why()
	}
	return tubes, err
}

// findTubes returns the tubes that match names, or all, from the admin API.
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

// matching returns the tubes that match one of names, or all if names is empty. A name or
// pattern without a tube is an error.
func matching(all []tube, names []string) (tubes []tube, err error) {
	if len(names) == 0 {
		return all, nil
	}
	matches := make([]*regexp.Regexp, len(names))
	for i, name := range names {
		matches[i] = regexp.MustCompile("^" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(name)) + "$")
	}
	used := make([]bool, len(names))
	for _, t := range all {
		wanted := false
		for i := range names {
			if matches[i].MatchString(t.Name) {
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
	return tubes, nil
}

// isPattern reports whether a name is a pattern: names of tubes contain no * or ?.
func isPattern(name string) bool { return strings.ContainsAny(name, "*?") }

// tubeOrders are the values of --sort. Larger values come first, and tubes with equal
// values are sorted by name.
var tubeOrders = map[string]func(*tube) uint64{
	"name":     func(*tube) uint64 { return 0 },
	"ready":    func(t *tube) uint64 { return t.Jobs.Ready },
	"reserved": func(t *tube) uint64 { return t.Jobs.Reserved },
	"delayed":  func(t *tube) uint64 { return t.Jobs.Delayed },
	"buried":   func(t *tube) uint64 { return t.Jobs.Buried },
	"waiting":  func(t *tube) uint64 { return t.Waiting },
	"total":    func(t *tube) uint64 { return t.TotalJobs },
	"bytes":    func(t *tube) uint64 { return t.BodyBytes },
	"age":      func(t *tube) uint64 { return uint64(t.OldestReady) },
}

// pick sorts tubes and returns the first of them, up to the limit, and the number of the
// others.
func (o *tubesOptions) pick(tubes []tube) (picked []tube, more int) {
	by := tubeOrders[o.sort]
	slices.SortFunc(tubes, func(a, b tube) int { return cmp.Or(cmp.Compare(by(&b), by(&a)), strings.Compare(a.Name, b.Name)) })
	if limit := int(o.limit); limit > 0 && len(tubes) > limit {
		return tubes[:limit], len(tubes) - limit
	}
	return tubes, 0
}

// statsOf returns the statistics of tubes from the protocol. It omits tubes that do not
// exist, and counts the tubes that the client must not see in hidden.
func statsOf(ctx context.Context, c *client.Conn, names []string) (tubes []*client.TubeStats, hidden int, err error) {
	stats, err := c.StatsTubeMany(ctx, names)
	batch, ok := errors.AsType[*client.BatchError](err)
	if err != nil && !ok {
		return nil, 0, err
	}
	for i, st := range stats {
		if st != nil {
			if st.Name == defaultTube && st.Watching > 0 {
				st.Watching-- // this connection
			}
			tubes = append(tubes, st)
			continue
		}
		switch err := batch.Errs[i]; {
		case errors.Is(err, client.ErrNotFound):
		case errors.Is(err, client.ErrUnauthorized):
			hidden++
		default:
			return nil, 0, err
		}
	}
	return tubes, hidden, nil
}

func (s *session) printTubes(tubes []tube, wide bool) error {
	titles := "TUBE:12 READY RESERVED DELAYED BURIED WAITING TOTAL PAUSED"
	if wide {
		titles += " TIMEOUTS RELEASES BURIES BYTES AGE"
	}
	err := cliutil.PrintList(&s.Session, tubes, titles, func(t *tube) []any {
		paused := ""
		if left := ofSeconds(t.PauseLeft); left >= health.Endless {
			paused = "yes"
		} else if left > 0 {
			paused = left.String()
		}
		row := []any{t.Name, t.Jobs.Ready, t.Jobs.Reserved, t.Jobs.Delayed, t.Jobs.Buried, t.Waiting, t.TotalJobs, paused}
		if wide {
			row = append(row, t.Timeouts, t.Releases, t.Buries, t.BodyBytes, ofSeconds(t.OldestReady))
		}
		return row
	})
	if err == nil && !s.JSON && len(tubes) == 1 && tubes[0].Why != "" {
		_, err = fmt.Fprintf(s.Out, "\n%s: %s\n", cliutil.Line(tubes[0].Name), cliutil.Line(tubes[0].Why))
		if err == nil && tubes[0].Policy != "" {
			_, err = fmt.Fprintln(s.Out, "policy:", cliutil.Line(tubes[0].Policy))
		}
	}
	return err
}
