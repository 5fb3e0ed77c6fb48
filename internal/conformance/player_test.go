package conformance

import (
	"errors"
	"testing"
	"time"
)

// A transcript that fails is played again only because the machine was late, and not for
// ever.
func TestInsist(t *testing.T) {
	const inTime, late = 0, tooLate
	wrong := errors.New("wrong")
	type result struct {
		late time.Duration
		err  error
	}
	for name, tc := range map[string]struct {
		results []result
		want    error
	}{
		"right":                        {[]result{{inTime, nil}}, nil},
		"wrong one time of two":        {[]result{{inTime, wrong}}, wrong},
		"busy, then right":             {[]result{{late, wrong}, {late, wrong}, {late, nil}}, nil},
		"busy, then wrong":             {[]result{{late, wrong}, {inTime, wrong}}, wrong},
		"wrong however often it plays": {[]result{{late, wrong}, {late, wrong}, {late, wrong}, {late, wrong}, {late, wrong}}, wrong},
	} {
		t.Run(name, func(t *testing.T) {
			played := 0
			err := insist(func() (time.Duration, error) {
				r := tc.results[played]
				played++
				return r.late, r.err
			})
			if err != tc.want || played != len(tc.results) {
				t.Errorf("%v after %d of %d attempts", err, played, len(tc.results))
			}
		})
	}
}
