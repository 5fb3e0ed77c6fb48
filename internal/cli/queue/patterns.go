package queue

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client"
	"github.com/beanpole-mq/beanpole/internal/cli/kit"
)

// A tubeOption is the tubes that a command is about. They can be named by arguments or by
// --tube, and where there may be many, by patterns: a name with * or ?, which no name of
// a tube has.
type tubeOption struct {
	given []string
}

// patternsUsage is the end of the usage of --tube where patterns are taken.
const patternsUsage = " `TUBES`, like an argument; * stands for any\ncharacters, ? for one"

// define adds --tube for a command that takes patterns. usage says what is done with the
// tubes.
func (o *tubeOption) define(cmd *cobra.Command, usage string) {
	cmd.Flags().StringSliceVarP(&o.given, "tube", "t", nil, usage+patternsUsage)
	cmd.ValidArgsFunction = completeTubes
}

// defineOne adds --tube for a command about one tube.
func (o *tubeOption) defineOne(cmd *cobra.Command, usage string) {
	cmd.Flags().StringSliceVarP(&o.given, "tube", "t", nil, usage+" `TUBE`, like the argument")
	cmd.ValidArgsFunction = completeTubes
}

var errNoTube = kit.UsageError("which tube? Name it as an argument, or with --tube")

// all returns the names and patterns that were given.
func (o *tubeOption) all(args []string) []string { return slices.Concat(args, o.given) }

// orIDs tells the ids of jobs among arguments, which are digits only, from names of tubes.
// There are ids or names, or neither.
func (o *tubeOption) orIDs(args []string) (ids, names []string, err error) {
	for _, arg := range args {
		if strings.Trim(arg, "0123456789") == "" {
			ids = append(ids, arg)
		} else {
			names = append(names, arg)
		}
	}
	names = append(names, o.given...)
	if len(ids) > 0 && len(names) > 0 {
		return nil, nil, kit.UsageError("%s is the id of a job and %s a tube: give ids or tubes", ids[0], names[0])
	}
	return ids, names, nil
}

// one returns the one tube that was given.
func (o *tubeOption) one(args []string) (string, error) {
	switch names := o.all(args); {
	case len(names) == 0:
		return "", errNoTube
	case len(names) > 1:
		return "", kit.UsageError("one tube only: %s and %s were given", names[0], names[1])
	case isPattern(names[0]):
		return "", kit.UsageError("one tube only: no pattern such as %s", names[0])
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
				return nil, kit.Nothing("no tube fits %s", name)
			}
		}
		tubes = append(tubes, slices.DeleteFunc(fit, func(tube string) bool { return slices.Contains(tubes, tube) })...)
	}
	return tubes, nil
}
