package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

// newSchedule returns the command schedule.
func newSchedule() *cobra.Command {
	const long = `Set, show and run schedules, which put jobs periodically.

A schedule survives a restart, and in a cluster each run puts one job. It overrides a schedule
of the same name in the server's configuration file.`
	return cliutil.Group(&cobra.Command{
		Use:   "schedule COMMAND",
		Short: "put jobs periodically",
		Long:  long,
		Example: `  beanpole schedule set nightly --cron '30 3 * * *' --timezone Europe/Berlin --tube reports BODY
  beanpole schedule list
  beanpole schedule run nightly`,
	}, newScheduleSet(), newScheduleList(),
		onSchedule("show", "show a schedule and its next runs", func(ctx context.Context, s *session, a *admin.Client, of *admin.OfSchedule) error {
			v, err := a.GetSchedule(ctx, of)
			if err != nil {
				return err
			}
			return s.printSchedule(&v)
		}),
		onSchedule("run", "put the job of a schedule now", func(ctx context.Context, s *session, a *admin.Client, of *admin.OfSchedule) error {
			done, err := a.RunSchedule(ctx, of)
			if err != nil {
				return err
			}
			return s.Print(done, "%d", done.ID)
		}),
		onSchedule("pause", "pause a schedule", changing("paused", (*admin.Client).PauseSchedule)),
		onSchedule("resume", "end the pause of a schedule", changing("resumed", (*admin.Client).ResumeSchedule)),
		onSchedule("remove", "remove a schedule; its jobs remain", changing("removed", (*admin.Client).RemoveSchedule)))
}

// changing returns a function that changes a schedule and prints done.
func changing(done string, do func(*admin.Client, context.Context, *admin.OfSchedule) error) func(context.Context, *session, *admin.Client, *admin.OfSchedule) error {
	return func(ctx context.Context, s *session, a *admin.Client, of *admin.OfSchedule) error {
		if err := do(a, ctx, of); err != nil {
			return err
		}
		return s.Print(map[string]string{"name": of.Name}, "%s: %s", of.Name, done)
	}
}

// onSchedule returns a subcommand for an existing schedule.
func onSchedule(name, short string, do func(ctx context.Context, s *session, a *admin.Client, of *admin.OfSchedule) error) *cobra.Command {
	cmd, _ := newSubcommand(name, "NAME", short, "", "  beanpole schedule "+name+" nightly", func(ctx context.Context, s *session, a *admin.Client, args []string) error {
		return do(ctx, s, a, &admin.OfSchedule{Name: args[0]})
	})
	return cmd
}

// scheduleFlags contains the options of 'schedule set', which are settings of the
// schedule.
var scheduleFlags = [][2]string{
	{"cron", "`TIMES` of the runs: minute, hour, day of month, month and day of week, or a name such as @daily"},
	{"every", "`TIME` between runs, instead of --cron"},
	{"timezone", "time `ZONE` of --cron, such as Europe/Berlin (default UTC)"},
	{"tube", "put the jobs into `TUBE`"},
	{"priority", "`PRIORITY` of the jobs (default 1024)"},
	{"delay", "delay the jobs by this `TIME` (default 0s)"},
	{"ttr", "TTR: maximum `TIME` that a worker holds a job (default 1m)"},
	{"missed", "`RUNS` to make up after downtime: once, skip or all (default once)"},
	{"overlap", "`ACTION` if the previous job is not finished: put or skip (default put)"},
}

func newScheduleSet() *cobra.Command {
	const more = `In the body, {time} is replaced by the time of the run, and {name} by NAME. The command
replaces the whole definition, and prints the next runs.

`
	settings := make(map[string]*string)
	cmd, _ := newSubcommand("set", "NAME [BODY]", "set a schedule", more,
		"  beanpole schedule set nightly --cron '30 3 * * *' --timezone Europe/Berlin --tube reports '{\"day\":\"{time}\"}'\n  beanpole schedule set poll --every 5m --tube feeds --overlap skip", func(ctx context.Context, s *session, a *admin.Client, args []string) error {
			in := admin.SetSchedule{OfSchedule: admin.OfSchedule{Name: args[0]}, Settings: make(map[string]string)}
			for name, value := range settings {
				if *value != "" {
					in.Settings[name] = *value
				}
			}
			if len(args) > 1 {
				in.Settings["body"] = args[1]
			}
			done, err := a.SetSchedule(ctx, &in)
			if err != nil {
				return err
			}
			return s.printSchedule(&done)
		})
	for _, f := range scheduleFlags {
		settings[f[0]] = cmd.Flags().String(f[0], "", f[1])
	}
	return cmd
}

func newScheduleList() *cobra.Command {
	toml := false
	cmd, _ := newSubcommand("list", "", "list all schedules", "", "  beanpole schedule list\n  beanpole schedule list --toml > schedules.toml", func(ctx context.Context, s *session, a *admin.Client, _ []string) error {
		all, err := a.ListSchedules(ctx)
		if err != nil {
			return err
		}
		if !toml {
			return cliutil.PrintList(&s.Session, all.Schedules, "NAME TIMES TUBE NEXT LAST JOB OUTCOME MISSED", func(v *admin.Schedule) []any {
				return []any{v.Name, timesOf(v), v.Settings["tube"], stateOf(v), cmp.Or(moment(v.LastRun), "-"), v.LastJob, v.Outcome, v.Missed}
			})
		}
		for _, v := range all.Schedules {
			fmt.Fprintf(s.Out, "[[schedule]]\nname = %q\n", v.Name)
			for _, name := range slices.Sorted(maps.Keys(v.Settings)) {
				value, _ := json.Marshal(v.Settings[name]) // such a string is also valid TOML
				fmt.Fprintf(s.Out, "%s = %s\n", name, value)
			}
			fmt.Fprintln(s.Out)
		}
		return nil
	})
	cmd.Flags().BoolVar(&toml, "toml", false, "export the schedules as tables of a configuration file")
	return cmd
}

// printSchedule prints a schedule.
func (s *session) printSchedule(v *admin.Schedule) error {
	if s.JSON {
		return s.PrintJSON(v)
	}
	rows := [][2]string{{"name", v.Name}, {"source", v.Source}}
	for _, name := range slices.Sorted(maps.Keys(v.Settings)) {
		rows = append(rows, [2]string{name, v.Settings[name]})
	}
	rows = append(rows, [2]string{"next", stateOf(v)})
	for _, at := range v.Next[min(1, len(v.Next)):] {
		rows = append(rows, [2]string{"", moment(at)})
	}
	if v.LastJob > 0 {
		rows = append(rows, [2]string{"last run", fmt.Sprintf("%s, job %d: %s", moment(v.LastRun), v.LastJob, v.Outcome)})
	}
	rows = append(rows, [2]string{"runs", fmt.Sprintf("%d, %d missed, %d skipped", v.Runs, v.Missed, v.Skipped)})
	return cliutil.PrintRows(s.Out, "setting value", rows, func(row *[2]string) []any { return []any{row[0], row[1]} })
}

// timesOf returns the times of the runs.
func timesOf(v *admin.Schedule) string {
	if every := v.Settings["every"]; every != "" {
		return "every " + every
	}
	return strings.TrimSpace(v.Settings["cron"] + " " + v.Settings["timezone"])
}

// stateOf returns the next run of a schedule, or the reason why there is none.
func stateOf(v *admin.Schedule) string {
	switch {
	case v.Problem != "":
		return v.Problem
	case v.Paused:
		return "paused"
	case len(v.Next) == 0:
		return "never"
	}
	return moment(v.Next[0])
}

// moment returns a time in seconds since 1970 as text in UTC, or "" for 0.
func moment(at int64) string {
	if at == 0 {
		return ""
	}
	return time.Unix(at, 0).UTC().Format(time.RFC3339)
}
