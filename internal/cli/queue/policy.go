package queue

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

const policyLong = `Set, unset, show and explain policies: the maximum number of attempts of a job, retry delays,
dead tubes, concurrency and rates of tubes.

A setting is durable, takes effect at once, and also applies to future tubes. It overrides the
server's configuration file. For each setting, the most specific pattern wins: the name of the
tube, then the pattern with the longest text before its first * or ?.`

// newPolicy returns the command policy.
func newPolicy() *cobra.Command {
	return cliutil.Group(&cobra.Command{
		Use:   "policy COMMAND",
		Short: "set and show the policies of tubes",
		Long:  policyLong,
		Example: `  beanpole policy set mail max-attempts=3 retry-delay=5s
  beanpole policy set 'mail-*' rate=10/s
  beanpole policy unset mail max-attempts
  beanpole policy show
  beanpole policy explain mail`,
	}, newPolicySet(), newPolicyUnset(), newPolicyShow(), newPolicyExplain())
}

// newPolicyCommand returns a subcommand of policy.
func newPolicyCommand(name, args, short, more, examples string, run func(ctx context.Context, s *session, a *admin.Client, args []string) error) *cobra.Command {
	cmd, s := newSubcommand(name, args, short, more, examples, func(ctx context.Context, s *session, a *admin.Client, args []string) error {
		if len(args) > 0 && args[0] == "" {
			return exit.UsageError("the pattern is empty; want the name of a tube, or a pattern such as 'mail-*'")
		}
		return run(ctx, s, a, args)
	})
	cmd.ValidArgsFunction = s.completeTubes
	return cmd
}

func newPolicySet() *cobra.Command {
	const more = `'beanpole policy explain TUBE' lists the settings and their values. Other settings of the
pattern stay unchanged.

`
	return newPolicyCommand("set", "PATTERN SETTING=VALUE...", "set settings of a pattern", more,
		"  beanpole policy set mail max-attempts=3 retry-delay=5s\n  beanpole policy set 'mail-*' paused=1h30m", func(ctx context.Context, s *session, a *admin.Client, args []string) error {
			in := admin.SetPolicy{OfPolicy: admin.OfPolicy{Pattern: args[0]}, Set: make(map[string]string)}
			for _, arg := range args[1:] {
				name, value, ok := strings.Cut(arg, "=")
				if !ok {
					return exit.UsageError("%q: want SETTING=VALUE, such as max-attempts=5", arg)
				}
				if before, twice := in.Set[name]; twice {
					return exit.UsageError("%s is set twice, to %s and to %s", name, before, value)
				}
				in.Set[name] = value
			}
			return s.setPolicy(ctx, a, &in)
		})
}

func newPolicyUnset() *cobra.Command {
	const more = "Without settings, unset all settings of the pattern. The values of the configuration file\napply again.\n\n"
	return newPolicyCommand("unset", "PATTERN [SETTING...]", "unset settings of a pattern", more,
		"  beanpole policy unset mail max-attempts\n  beanpole policy unset 'mail-*'", func(ctx context.Context, s *session, a *admin.Client, args []string) error {
			of := admin.OfPolicy{Pattern: args[0]}
			if len(args) > 1 {
				return s.setPolicy(ctx, a, &admin.SetPolicy{OfPolicy: of, Unset: args[1:]})
			}
			if err := a.DeletePolicy(ctx, &of); err != nil {
				return err
			}
			return s.printPolicy(&admin.Policy{Pattern: args[0], Source: "runtime", Settings: map[string]string{}})
		})
}

// setPolicy sets and unsets settings, and prints the policy of the pattern.
func (s *session) setPolicy(ctx context.Context, a *admin.Client, in *admin.SetPolicy) error {
	p, err := a.SetPolicy(ctx, in)
	if err != nil {
		return err
	}
	return s.printPolicy(&p)
}

func (s *session) printPolicy(p *admin.Policy) error {
	for _, warning := range p.Warnings {
		s.Note("warning: %s", warning)
	}
	return s.Print(p, "%s: %s", p.Pattern, settingsOf(p))
}

// settingsOf returns the settings as arguments of 'policy set'.
func settingsOf(p *admin.Policy) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(p.Settings)) {
		one := name + "=" + p.Settings[name]
		if strings.ContainsAny(one, " {}") {
			one = "'" + one + "'"
		}
		all = append(all, one)
	}
	if all == nil {
		return "nothing is set"
	}
	return strings.Join(all, " ")
}

func newPolicyShow() *cobra.Command {
	return newPolicyCommand("show", "", "show all policies, the most specific patterns last", "", "  beanpole policy show\n  beanpole policy show --json", func(ctx context.Context, s *session, a *admin.Client, _ []string) error {
		all, err := a.ListPolicies(ctx)
		if err != nil {
			return err
		}
		return cliutil.PrintList(&s.Session, all.Policies, "TUBES FROM SETTINGS", func(p *admin.Policy) []any {
			return []any{p.Pattern, from(p.Source, p.Number), settingsOf(p)}
		})
	})
}

func newPolicyExplain() *cobra.Command {
	return newPolicyCommand("explain", "TUBE", "show the settings of a tube, and the source of each value", "", "  beanpole policy explain mail\n  beanpole policy explain mail --json", func(ctx context.Context, s *session, a *admin.Client, args []string) error {
		p, err := a.ExplainPolicy(ctx, &admin.OfTube{Tube: args[0]})
		switch {
		case err != nil:
			return err
		case s.JSON:
			return s.PrintJSON(p)
		}
		return cliutil.PrintRows(s.Out, "setting value from takes", p.Settings, func(v *admin.SettingInForce) []any {
			where := from(v.Source, v.Number)
			if v.Pattern != "" {
				where += ", of the tubes " + v.Pattern
			}
			value := v.Value
			if v.Hidden {
				value = "(hidden)"
			}
			return []any{v.Name, value, where, v.Takes}
		})
	})
}

// from describes the source of a policy.
func from(source string, number int64) string {
	switch source {
	case "file":
		return "file, policy " + strconv.FormatInt(number, 10)
	case "runtime":
		return "set at run time"
	}
	return source
}
