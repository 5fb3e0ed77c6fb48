package access

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// A Pattern matches names of tubes.
type Pattern struct{ expr *regexp.Regexp } // nil: it matches all

// NewPattern returns the pattern that matches what one of the globs does: * is any
// characters, ? is one. There must be one: what is meant for every tube says "*", so that a
// file which was cut short does not.
func NewPattern(globs []string) (Pattern, error) {
	switch {
	case len(globs) == 0:
		return Pattern{}, errors.New(`it has no tubes ("*" is every tube)`)
	case slices.Contains(globs, "*"):
		return Pattern{}, nil
	}
	exprs := make([]string, len(globs))
	for i, g := range globs {
		exprs[i] = strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(g))
	}
	return Pattern{regexp.MustCompile(`^(?:` + strings.Join(exprs, "|") + `)$`)}, nil
}

// Matches reports whether a tube's name matches.
func (p Pattern) Matches(tube string) bool { return p.all() || p.expr.MatchString(tube) }

func (p Pattern) all() bool { return p.expr == nil }
