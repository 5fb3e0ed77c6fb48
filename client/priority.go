package client

import (
	"fmt"
	"math"
)

// A Priority says which of the ready jobs of a tube goes first: the one with the
// smallest number. It is a number from 1 to 4294967295, or [MostUrgent], which goes
// before 1. The zero value is [DefaultPriority], so a job whose priority is not set is an
// ordinary one.
type Priority int64

const (
	// MostUrgent is the number 0 of the protocol.
	MostUrgent Priority = -1

	// DefaultPriority is the number that the zero value stands for. Jobs below it are
	// what servers count as urgent.
	DefaultPriority Priority = 1024
)

// PriorityOf returns the priority with a number of the protocol, such as
// [JobStats].Priority, so that a job keeps what it had.
func PriorityOf(number uint32) Priority {
	if number == 0 {
		return MostUrgent
	}
	return Priority(number)
}

// number returns the priority as the protocol has it.
func (p Priority) number() (uint32, error) {
	switch {
	case p == MostUrgent:
		return 0, nil
	case p == 0:
		return uint32(DefaultPriority), nil
	case p < 0 || p > math.MaxUint32:
		return 0, fmt.Errorf("%w: priority %d: want 1 to %d, or MostUrgent", ErrInvalid, int64(p), uint32(math.MaxUint32))
	}
	return uint32(p), nil
}
