package daemon

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/internal/certs"
)

// expiries returns the expiry of each certificate file of the listeners. Listeners that
// share a file can have read it at different times, but each file is returned only once.
func (s *security) expiries() []certs.Expiry {
	var all []certs.Expiry
	for _, source := range s.certs {
		all = append(all, source.Expiry())
	}
	slices.SortFunc(all, func(a, b certs.Expiry) int { return cmp.Or(strings.Compare(a.File, b.File), a.End.Compare(b.End)) })
	return slices.CompactFunc(all, func(a, b certs.Expiry) bool { return a.File == b.File })
}

// certificateWarnings returns a warning for each certificate that could not be loaded,
// has expired or expires soon.
func (s *security) certificateWarnings() []string {
	warnings := certificateWarnings(s.expiries(), time.Now())
	for _, source := range s.certs {
		if err := source.Failed(); err != nil {
			warnings = append(warnings, fmt.Sprintf("cannot use a new certificate; keeping the previous one: %v", err))
		}
	}
	slices.Sort(warnings)
	return slices.Compact(warnings)
}

// certificateWarnings returns a warning for each certificate that has expired or expires
// soon.
func certificateWarnings(all []certs.Expiry, now time.Time) []string {
	var warnings []string
	for _, e := range all {
		switch end := e.End.UTC().Format("2006-01-02 15:04 MST"); {
		case !now.Before(e.End):
			warnings = append(warnings, fmt.Sprintf("the certificate %s expired on %s: clients refuse it", e.File, end))
		case e.Soon(now):
			warnings = append(warnings, fmt.Sprintf("the certificate %s expires soon, on %s", e.File, end))
		}
	}
	return warnings
}
