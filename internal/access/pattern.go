package access

import (
	"errors"
	"slices"
)

// A Pattern is a list of globs, one of which must match. * matches any characters, ? one.
type Pattern []string

// NewPattern returns a pattern of globs. It returns an error for an empty list: only "*"
// matches every tube, so that a truncated file does not.
func NewPattern(globs []string) (Pattern, error) {
	if len(globs) == 0 {
		return nil, errors.New(`it has no tubes ("*" is every tube)`)
	}
	return slices.Clone(globs), nil
}

// Matches reports whether a glob of p matches the name of a tube. If tube is itself a
// glob, Matches reports whether a single glob of p covers every name it matches. It can
// return false if only a combination of globs does.
func (p Pattern) Matches(tube string) bool {
	return slices.ContainsFunc(p, func(glob string) bool { return Match(glob, tube) })
}

func (p Pattern) all() bool { return slices.Contains(p, "*") }

// Match is Matches for one glob.
func Match(glob, tube string) bool {
	star, from := -1, 0 // the last * of the glob, and what it must have matched up to at least
	for g, t := 0, 0; ; {
		switch {
		case g < len(glob) && glob[g] == '*':
			star, from = g, t
			g++
			continue
		case g == len(glob) && t == len(tube):
			return true
		case g < len(glob) && t < len(tube) && (glob[g] == tube[t] || glob[g] == '?' && tube[t] != '*'):
			g, t = g+1, t+1
			continue
		}
		if from++; star < 0 || from > len(tube) { // the * takes one more
			return false
		}
		g, t = star+1, from
	}
}
