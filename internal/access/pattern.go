package access

import (
	"errors"
	"slices"
	"strings"
)

// A Pattern is a list of globs, one of which must match. * matches any characters, and ?
// matches one.
type Pattern []string

// NewPattern returns a pattern of globs. It returns an error for an empty list, so that a
// truncated file does not match every tube: only "*" does.
func NewPattern(globs []string) (Pattern, error) {
	if len(globs) == 0 {
		return nil, errors.New(`no tubes; use "*" for every tube`)
	}
	return slices.Clone(globs), nil
}

// Matches reports whether a glob of p matches the name of a tube. If tube is itself a
// glob, Matches reports whether a single glob of p covers every name that tube matches.
// It can return false if only a combination of globs does.
func (p Pattern) Matches(tube string) bool {
	return slices.ContainsFunc(p, func(glob string) bool { return Match(glob, tube) })
}

func (p Pattern) all() bool { return slices.Contains(p, "*") }

// Match is like Matches, for a single glob.
func Match(glob, tube string) bool {
	part, rest, star := strings.Cut(glob, "*")
	if !star {
		return len(part) == len(tube) && hasPrefix(tube, part)
	}
	if !hasPrefix(tube, part) {
		return false
	}
	for {
		tube = tube[len(part):]
		if part, rest, star = strings.Cut(rest, "*"); !star {
			return len(part) <= len(tube) && hasPrefix(tube[len(tube)-len(part):], part)
		}
		at := indexPart(tube, part)
		if at < 0 {
			return false
		}
		tube = tube[at:]
	}
}

// indexPart returns the index of the first match in tube of part, which contains no *,
// or -1.
func indexPart(tube, part string) int {
	if !strings.Contains(part, "?") {
		return strings.Index(tube, part)
	}
	for at := range len(tube) - len(part) + 1 {
		if hasPrefix(tube[at:], part) {
			return at
		}
	}
	return -1
}

// hasPrefix reports whether part, which contains no *, matches the start of tube.
func hasPrefix(tube, part string) bool {
	if len(part) > len(tube) {
		return false
	}
	for i := range len(part) {
		if part[i] != tube[i] && (part[i] != '?' || tube[i] == '*') {
			return false
		}
	}
	return true
}
