package access

import (
	"regexp"
	"slices"
	"strings"
)

// A Pattern matches names of tubes. The zero value matches all.
type Pattern struct{ expr *regexp.Regexp }

// NewPattern returns the pattern that matches what one of the globs does: * is any
// characters, ? is one. Without globs it matches all.
func NewPattern(globs []string) Pattern {
	if len(globs) == 0 || slices.Contains(globs, "*") {
		return Pattern{}
	}
	exprs := make([]string, len(globs))
	for i, g := range globs {
		exprs[i] = strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(g))
	}
	return Pattern{regexp.MustCompile(`^(?:` + strings.Join(exprs, "|") + `)$`)}
}

// Matches reports whether a tube's name matches.
func (p Pattern) Matches(tube string) bool { return p.all() || p.expr.MatchString(tube) }

func (p Pattern) all() bool { return p.expr == nil }
