package access

import (
	"fmt"
	"strings"
)

// Rights are what an identity may do with a tube.
type Rights uint8

// The rights. What each covers in terms of commands is in doc/security.md.
const (
	Put     Rights = 1 << iota // put jobs
	Reserve                    // reserve jobs, and delete, release, bury and touch those that are held
	Peek                       // see the bodies of jobs without reserving them
	Manage                     // delete jobs that nobody holds, kick, pause, and clear or move jobs
	Stats                      // see figures

	None Rights = 0
	All         = Put | Reserve | Peek | Manage | Stats
)

// rightNames are the names in the order of the bits.
var rightNames = [...]string{"put", "reserve", "peek", "manage", "stats"}

// ParseRights reads the names of rights; "all" stands for every one.
func ParseRights(names []string) (Rights, error) {
	r := None
	for _, name := range names {
		if name == "all" {
			r |= All
			continue
		}
		bit := None
		for i, n := range rightNames {
			if n == name {
				bit = 1 << i
			}
		}
		if bit == None {
			return None, fmt.Errorf("there is no right %q; the rights are %s and all", name, strings.Join(rightNames[:], ", "))
		}
		r |= bit
	}
	return r, nil
}

// String returns the names, with commas between them.
func (r Rights) String() string {
	if r == None {
		return "none"
	}
	var names []string
	for i, n := range rightNames {
		if r&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, ",")
}
