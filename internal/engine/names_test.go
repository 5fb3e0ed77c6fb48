package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func (l Names) collect() []string { return slices.Clone(l.names) }

// A taken is a snapshot with the contents of the list at that time.
type taken struct {
	names Names
	want  []string
}

func (s taken) check(t *testing.T) {
	t.Helper()
	if got := s.names.collect(); !slices.Equal(got, s.want) {
		t.Fatalf("a snapshot of %d names changed: %q, want %q", len(s.want), got, s.want)
	}
	if got, want := s.names.Bytes(), len(strings.Join(s.want, "")); got != want {
		t.Fatalf("a snapshot of %d names reports %d bytes, want %d", len(s.want), got, want)
	}
}

// TestNamesRandom compares a list with a plain slice, and each snapshot with a copy of
// the slice.
func TestNamesRandom(t *testing.T) {
	rng := seeded(t)
	var list nameList
	var plain []string
	var snapshots []taken
	for i := range 5000 {
		growing := i/500%2 == 0
		switch r := rng.IntN(10); {
		case r == 0 && rng.IntN(10) == 0:
			s := taken{list.snapshot(), slices.Clone(plain)}
			s.check(t)
			snapshots = append(snapshots, s)
		case len(plain) == 0 || (r < 7) == growing:
			name := fmt.Sprintf("%0*d", 1+rng.IntN(20), i)
			list.push(name)
			plain = append(plain, name)
		default:
			k := rng.IntN(len(plain))
			last := len(plain) - 1
			if got := list.remove(k); got != plain[last] {
				t.Fatalf("%q took the place of the removed name, want %q", got, plain[last])
			}
			plain[k] = plain[last]
			plain = plain[:last]
		}
	}
	if len(snapshots) < 20 {
		t.Errorf("only %d snapshots", len(snapshots))
	}
	for _, s := range append(snapshots, taken{list.Names, plain}) {
		s.check(t)
	}
}
