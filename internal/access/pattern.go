package access

import (
	"errors"
	"slices"
)

// A Pattern is globs, of which one must match: * is any characters, ? is one.
type Pattern []string

// NewPattern returns the pattern of some globs. There must be one: what is meant for every tube says "*", so that a
// file which was cut short does not.
func NewPattern(globs []string) (Pattern, error) {
	if len(globs) == 0 {
		return nil, errors.New(`it has no tubes ("*" is every tube)`)
	}
	return slices.Clone(globs), nil
}

// Matches reports whether a tube's name matches. Of a glob it reports whether each name does that
// the glob matches; it may say no if only several globs of the pattern together match them all.
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
