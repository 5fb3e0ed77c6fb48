package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/health"
)

// A tube as JSON has it. Times are whole seconds.
type tube struct {
	Name      string `json:"name"`
	Ready     uint64 `json:"ready"`
	Urgent    uint64 `json:"urgent"`
	Reserved  uint64 `json:"reserved"`
	Delayed   uint64 `json:"delayed"`
	Buried    uint64 `json:"buried"`
	Waiting   uint64 `json:"waiting"`
	Watching  uint64 `json:"watching"`
	Using     uint64 `json:"using"`
	TotalJobs uint64 `json:"total_jobs"`
	Deletes   uint64 `json:"deletes"`
	PauseLeft int64  `json:"pause_left"`
	Why       string `json:"why,omitempty"` // of a tube alone: why its jobs wait

	*tubeCounts // nil: the server was not asked for them
}

// tubeCounts is what the API tells of a tube and the protocol does not: how large the bodies of its
// jobs are, for how many seconds the next one has been ready, and how often its jobs have
// come to this since the tube came to be.
type tubeCounts struct {
	BodyBytes uint64 `json:"body_bytes"`
	Oldest    int64  `json:"oldest_ready"`

	Timeouts uint64 `json:"timeouts"`
	Releases uint64 `json:"releases"`
	Buries   uint64 `json:"buries"`
}

// countsUsage explains the option where it tells more.
const countsUsage = "tell of bytes, ages, timeouts, releases and buries too,\nfrom the admin pages of a beanpole at `ADDR`"

// countsOf asks for those of all tubes.
func countsOf(ctx context.Context, a *admin.Client) (map[string]tubeCounts, error) {
	counts := make(map[string]tubeCounts)
	for in, more := (admin.ListTubes{Limit: 10_000}), true; more; more = in.Cursor != "" {
		page, err := a.ListTubes(ctx, &in)
		if err != nil {
			return nil, err
		}
		for i := range page.Tubes {
			t := &page.Tubes[i]
			counts[t.Name] = tubeCounts{t.BodyBytes, t.OldestReady, t.Timeouts, t.Releases, t.Buries}
		}
		in.Cursor = page.Next
	}
	return counts, nil
}

func newTubes() *cobra.Command {
	var o tubesOptions
	s := new(session)
	cmd := s.command("tubes", "[TUBE...]", "list the tubes with their jobs", func(ctx context.Context, args []string) error {
		if _, ok := tubeOrders[o.sort]; !ok {
			return cliutil.UsageError("--sort is one of: %s", strings.Join(slices.Sorted(maps.Keys(tubeOrders)), ", "))
		}
		if s.Admin == "" && (o.sort == "bytes" || o.sort == "age") {
			return cliutil.UsageError("--sort %s needs --admin or BEANPOLE_ADMIN: only the admin pages of a beanpole tell that", o.sort)
		}
		if err := s.Connect(ctx); err != nil {
			return err
		}
		names, err := expand(ctx, s.Conn, s.allTubes(args))
		if err != nil {
			return err
		}
		stats, hidden, err := loadTubes(ctx, s.Conn, names)
		if err != nil {
			return err
		}
		if hidden > 0 {
			s.Note("tubes left out, since the server does not let us look at them: %d", hidden)
		}
		tubes, err := s.describeTubes(ctx, stats, len(names) == 1)
		if err != nil {
			return err
		}
		tubes, more := o.pick(tubes)
		if err := s.printTubes(tubes); err != nil {
			return err
		}
		if more > 0 {
			s.Note("tubes that --limit leaves out: %d", more)
		}
		return nil
	})
	cmd.Long = "List all tubes, or the tubes that are named, with their numbers of jobs. For a single tube\n" +
		"the command prints the reason why its jobs wait. It uses the admin API with --admin, or at the\n" +
		"local socket of the server: then the reason includes policies, workers and findings."
	cmd.Example = "  beanpole tubes --sort buried --limit 10\n  beanpole tubes 'mail.*'"
	s.defineTubes(cmd, "list these")
	f := cmd.Flags()
	f.StringVar(&o.sort, "sort", "name", "`BY` name, ready, reserved, delayed, buried, waiting,\ntotal, bytes or age; the most first")
	f.StringVar(&o.filter, "filter", "", "only tubes with this `TEXT` in their names")
	f.UintVarP(&o.limit, "limit", "n", 0, "list `N` tubes and no more; 0: all")
	s.DefineAdmin(cmd, "", countsUsage)
	cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(slices.Sorted(maps.Keys(tubeOrders)), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// tubesOptions say which tubes to list, and in which order.
type tubesOptions struct {
	sort, filter string
	limit        uint
}

// describeTubes returns what is to be told of tubes, with what only the admin pages tell if it is
// known where they are; of one alone also why its jobs wait.
func (s *session) describeTubes(ctx context.Context, stats []*client.TubeStats, alone bool) ([]tube, error) {
	tubes := make([]tube, len(stats))
	for i, st := range stats {
		tubes[i] = tube{
			Name: st.Name, Ready: st.JobsReady, Urgent: st.JobsUrgent, Reserved: st.JobsReserved, Delayed: st.JobsDelayed,
			Buried: st.JobsBuried, Waiting: st.Waiting, Watching: st.Watching, Using: st.Using, TotalJobs: st.TotalJobs,
			Deletes: st.CmdDelete, PauseLeft: seconds(st.PauseLeft),
		}
	}
	alone = alone && len(tubes) == 1
	if s.Admin == "" {
		if alone {
			tubes[0].Why = s.why(ctx, &tubes[0])
		}
		return tubes, nil
	}
	a, err := s.AdminClient()
	if err != nil {
		return nil, err
	}
	counts, err := countsOf(ctx, a)
	for i := range tubes {
		tubes[i].tubeCounts = new(counts[tubes[i].Name]) // which is empty of one that has just come, or gone
	}
	if err == nil && alone {
		var found admin.Explanation
		found, err = a.ExplainTube(ctx, &admin.OfTube{Tube: tubes[0].Name})
		tubes[0].Why = found.Text
	}
	return tubes, err
}

// why returns the sentence about a tube: from the admin API at the local socket of the server,
// or else from the statistics of the protocol, which omit policies and workers.
func (s *session) why(ctx context.Context, t *tube) string {
	if a := s.LocalAdminClient(); a != nil {
		if found, err := a.ExplainTube(ctx, &admin.OfTube{Tube: t.Name}); err == nil {
			return found.Text
		}
	}
	one := health.Tube{
		Name: t.Name, Ready: t.Ready, Reserved: t.Reserved, Delayed: t.Delayed, Buried: t.Buried,
		Watching: t.Watching, Waiting: t.Waiting, PauseLeft: ofSeconds(t.PauseLeft),
	}
	text, _ := one.Why()
	return text
}

// tubeOrders are what tubes can be sorted by. The larger come first; those that are equal
// come by name.
var tubeOrders = map[string]func(*tube) uint64{
	"name":     func(*tube) uint64 { return 0 },
	"ready":    func(t *tube) uint64 { return t.Ready },
	"reserved": func(t *tube) uint64 { return t.Reserved },
	"delayed":  func(t *tube) uint64 { return t.Delayed },
	"buried":   func(t *tube) uint64 { return t.Buried },
	"waiting":  func(t *tube) uint64 { return t.Waiting },
	"total":    func(t *tube) uint64 { return t.TotalJobs },
	"bytes":    func(t *tube) uint64 { return t.BodyBytes },
	"age":      func(t *tube) uint64 { return uint64(t.Oldest) },
}

// pick returns the tubes that are wanted, in their order, and how many the limit leaves
// out.
func (o *tubesOptions) pick(tubes []tube) (picked []tube, more int) {
	picked = slices.DeleteFunc(tubes, func(t tube) bool { return !strings.Contains(t.Name, o.filter) })
	by := tubeOrders[o.sort]
	slices.SortFunc(picked, func(a, b tube) int { return cmp.Or(cmp.Compare(by(&b), by(&a)), strings.Compare(a.Name, b.Name)) })
	if limit := int(o.limit); limit > 0 && len(picked) > limit {
		return picked[:limit], len(picked) - limit
	}
	return picked, 0
}

// loadTubes asks for the tubes with these names, or for all. One that has gone
// meanwhile is left out, and one that we may not look at is hidden; one that was asked
// for by name must be there.
func loadTubes(ctx context.Context, c *client.Conn, names []string) (tubes []*client.TubeStats, hidden int, err error) {
	asked := len(names) > 0
	if !asked {
		if names, err = c.ListTubes(ctx); err != nil {
			return nil, 0, err
		}
		slices.Sort(names)
	}
	stats, err := c.StatsTubeMany(ctx, names)
	batch, ok := errors.AsType[*client.BatchError](err)
	if err != nil && !ok {
		return nil, 0, err
	}
	for i, st := range stats {
		if st != nil {
			if st.Name == defaultTube && st.Watching > 0 {
				st.Watching-- // it is us
			}
			tubes = append(tubes, st)
			continue
		}
		switch err := batch.Errs[i]; {
		case asked:
			return nil, 0, err
		case errors.Is(err, client.ErrNotFound):
		case errors.Is(err, client.ErrUnauthorized):
			hidden++
		default:
			return nil, 0, err
		}
	}
	return tubes, hidden, nil
}

func (s *session) printTubes(tubes []tube) error {
	titles := "TUBE:12 READY RESERVED DELAYED BURIED WAITING TOTAL PAUSED"
	if s.Admin != "" {
		titles = "TUBE:12 READY RESERVED DELAYED BURIED WAITING TOTAL TIMEOUTS RELEASES BURIES BYTES AGE PAUSED"
	}
	err := cliutil.PrintList(&s.Session, tubes, titles, func(t *tube) []any {
		row := []any{t.Name, t.Ready, t.Reserved, t.Delayed, t.Buried, t.Waiting, t.TotalJobs}
		if s.Admin != "" {
			row = append(row, t.Timeouts, t.Releases, t.Buries, t.BodyBytes, ofSeconds(t.Oldest))
		}
		paused := ""
		if left := ofSeconds(t.PauseLeft); left >= health.Endless {
			paused = "yes"
		} else if left > 0 {
			paused = left.String()
		}
		return append(row, paused)
	})
	if err == nil && !s.JSON && len(tubes) == 1 && tubes[0].Why != "" {
		_, err = fmt.Fprintf(s.Out, "\n%s: %s\n", cliutil.Line(tubes[0].Name), cliutil.Line(tubes[0].Why))
	}
	return err
}
