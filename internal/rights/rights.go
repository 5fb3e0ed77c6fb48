// Package rights defines the rights of clients on tubes, and the requirements of commands
// and operations of the JSON API. Package access stores and checks the rights of
// identities.
//
//	need := rights.Peek.On(rights.TubeOfJob)
//
// Each row of the tables of commands and of operations has a Need. Identities with rules
// cannot use a row without a Need.
package rights

import (
	"fmt"
	"slices"
	"strings"
)

// A Set is a set of rights on a tube.
type Set uint8

// The rights. doc/security.md lists the commands for each right.
const (
	Put     Set = 1 << iota // put jobs
	Reserve                 // reserve jobs; delete, release, bury and touch held jobs
	Peek                    // see the bodies of jobs without reserving them
	Manage                  // delete jobs that no client holds, kick, pause, clear and move jobs
	Stats                   // see statistics

	None Set = 0
	All      = Put | Reserve | Peek | Manage | Stats
)

// names contains the rights, in the order of the bits.
var names = [...]string{"put", "reserve", "peek", "manage", "stats"}

// Parse returns the rights with these names. "all" is every right.
func Parse(words []string) (Set, error) {
	s := None
	for _, word := range words {
		if word == "all" {
			s |= All
			continue
		}
		i := slices.Index(names[:], word)
		if i < 0 {
			return None, fmt.Errorf("unknown right %q; the rights are %s and all", word, strings.Join(names[:], ", "))
		}
		s |= 1 << i
	}
	return s, nil
}

// String returns the names, separated by commas.
func (s Set) String() string {
	if s == None {
		return "none"
	}
	var of []string
	for i, n := range names {
		if s&(1<<i) != 0 {
			of = append(of, n)
		}
	}
	return strings.Join(of, ",")
}

// A Need is a requirement on an identity: all rights of a set, or one of them, on a
// Place. An identity with rules never meets the zero Need.
type Need struct {
	Rights Set
	OneOf  bool
	Place  Place
}

// On requires all rights of the set.
func (s Set) On(p Place) Need { return Need{s, false, p} }

// AnyOn requires one right of the set.
func (s Set) AnyOn(p Place) Need { return Need{s, true, p} }

// String returns the rights in words, such as "the stats and peek rights".
func (n Need) String() string {
	if n.OneOf {
		return "the " + strings.ReplaceAll(n.Rights.String(), ",", " or ") + " right"
	}
	set, s := n.Rights.String(), ""
	if strings.Contains(set, ",") {
		s = "s"
	}
	return "the " + strings.ReplaceAll(set, ",", " and ") + " right" + s
}

// MetBy reports whether a set of rights on a tube meets the need.
func (n Need) MetBy(s Set) bool {
	if n.OneOf {
		return n.Rights&s != None
	}
	return n.Rights&^s == None
}

// Free requires no rights.
var Free = Need{Place: Nowhere}

// A Place specifies the tubes on which rights are needed.
type Place uint8

// The places.
const (
	Unstated     Place = iota // not specified
	Nowhere                   // no tube
	NamedTube                 // the named tube
	TwoTubes                  // both named tubes
	TubeInUse                 // the tube that the client uses
	TubeOfJob                 // the tube of the job; no rights are needed for a job that does not exist
	WatchedTubes              // all tubes that the client watches
	SomeTube                  // at least one tube
	EveryTube                 // every tube
)
