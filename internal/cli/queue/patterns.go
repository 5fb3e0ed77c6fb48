package queue

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
)

// The tubes that a command is about can be named by arguments or by --tube, and where there may be
// many, by patterns: a name with * or ?, which no name of a tube has.

// defineTubes adds --tube for a command that takes patterns. usage says what is done with the
// tubes.
func (s *session) defineTubes(cmd *cobra.Command, usage string) {
	s.defineTube(cmd, usage+" `TUBES`, like an argument; * stands for any\ncharacters, ? for one")
}

// defineTube adds --tube for a command about one tube.
func (s *session) defineTube(cmd *cobra.Command, usage string) {
	cmd.Flags().StringSliceVarP(&s.tubes, "tube", "t", nil, usage)
	cmd.ValidArgsFunction = s.completeTubes
	cmd.RegisterFlagCompletionFunc("tube", s.completeTubes) // fails for a flag that is not there
}

var errNoTube = cliutil.UsageError("which tube? Name it as an argument, or with --tube")

// allTubes returns the names and patterns that were given.
func (s *session) allTubes(args []string) []string { return slices.Concat(args, s.tubes) }

// idsOrTubes tells the ids of jobs among arguments, which are digits only, from names of tubes.
// There are ids or names, or neither.
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
		return nil, nil, cliutil.UsageError("%s is the id of a job and %s a tube: give ids or tubes", ids[0], names[0])
	}
	return ids, names, nil
}

// oneTube returns the one tube that was given.
func (s *session) oneTube(args []string) (string, error) {
	switch names := s.allTubes(args); {
	case len(names) == 0:
		return "", errNoTube
	case len(names) > 1:
		return "", cliutil.UsageError("one tube only: %s and %s were given", names[0], names[1])
	case isPattern(names[0]):
		return "", cliutil.UsageError("one tube only: no pattern such as %s", names[0])
	default:
		return names[0], nil
	}
}

func isPattern(name string) bool { return strings.ContainsAny(name, "*?") }

// pattern returns what the names match that a pattern stands for.
func pattern(name string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(name)) + "$")
}

// expand returns the names of the tubes that names and patterns stand for, each once. A
// pattern that fits none is an error, as a name is of which there is no tube.
func expand(ctx context.Context, c *client.Conn, names []string) (tubes []string, err error) {
	var all []string
	for _, name := range names {
		fit := []string{name}
		if isPattern(name) {
			if all == nil {
				if all, err = c.ListTubes(ctx); err != nil {
					return nil, err
				}
				slices.Sort(all)
			}
			fits := pattern(name).MatchString
			if fit = slices.DeleteFunc(slices.Clone(all), func(tube string) bool { return !fits(tube) }); len(fit) == 0 {
				return nil, cliutil.NotFoundError("no tube fits %s", name)
			}
		}
		tubes = append(tubes, slices.DeleteFunc(fit, func(tube string) bool { return slices.Contains(tubes, tube) })...)
	}
	return tubes, nil
}
