// Package rights names what clients may be allowed to do with tubes, and says what a
// command or an operation of the JSON API needs of them. Who has which rights is
// known to package access; that decides, too.
//
//	need := rights.Peek.On(rights.TubeOfJob)
//
// Each row of the table of commands has a Need, and so has each row of the table of
// operations. A row without one is refused to everybody with rules.
package rights

import (
	"fmt"
	"slices"
	"strings"
)

// A Set is a set of rights on a tube.
type Set uint8

// The rights. What each covers in terms of commands is in doc/security.md.
const (
	Put     Set = 1 << iota // put jobs
	Reserve                 // reserve jobs, and delete, release, bury and touch those that are held
	Peek                    // see the bodies of jobs without reserving them
	Manage                  // delete jobs that nobody holds, kick, pause, and clear or move jobs
	Stats                   // see figures

	None Set = 0
	All      = Put | Reserve | Peek | Manage | Stats
)

// names are in the order of the bits.
var names = [...]string{"put", "reserve", "peek", "manage", "stats"}

// Parse reads the names of rights; "all" stands for every one.
func Parse(words []string) (Set, error) {
	s := None
	for _, word := range words {
		if word == "all" {
			s |= All
			continue
		}
		i := slices.Index(names[:], word)
		if i < 0 {
			return None, fmt.Errorf("there is no right %q; the rights are %s and all", word, strings.Join(names[:], ", "))
		}
		s |= 1 << i
	}
	return s, nil
}

// String returns the names, with commas between them.
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

// A Need is what something asks of an identity: all of some rights, or one of them, on
// a place. The zero Need is met by nobody who has rules.
type Need struct {
	Rights Set
	OneOf  bool
	Place  Place
}

// On returns the need of all rights of the set.
func (s Set) On(p Place) Need { return Need{s, false, p} }

// OneOn returns the need of one right of the set.
func (s Set) OneOn(p Place) Need { return Need{s, true, p} }

// MetBy reports whether the set is enough for a tube that the need is about.
func (n Need) MetBy(s Set) bool {
	if n.OneOf {
		return n.Rights&s != None
	}
	return n.Rights&^s == None
}

// Free is the need of what everybody may do.
var Free = Need{Place: Nowhere}

// A Place says on which tubes rights are needed.
type Place uint8

// The places.
const (
	Unstated     Place = iota // nobody has said where
	Nowhere                   // on none
	NamedTube                 // on the one that is named
	TwoTubes                  // on both that are named
	TubeInUse                 // on the one that the client uses
	TubeOfJob                 // on that of the job; what does not exist needs no rights
	WatchedTubes              // on all that the client watches
	SomeTube                  // on some tube, whichever that is
	EveryTube                 // on every tube
)
