package client

import (
	"fmt"
	"math"
	"time"

	"github.com/beanpole-mq/beanpole/internal/wire"
)

// seconds returns a duration in seconds, rounded up.
func seconds(what string, d time.Duration) (uint32, error) {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	if d < 0 || s > math.MaxUint32 {
		return 0, fmt.Errorf("%w: %s %v: want 0 to %d seconds", ErrInvalid, what, d, uint32(math.MaxUint32))
	}
	return uint32(s), nil
}

// longestWait is the maximum timeout of reserve-with-timeout, 68 years. Longer times are
// cut to it.
const longestWait = wire.MaxTimeout * time.Second

// timeout returns a duration as the argument of reserve-with-timeout.
func timeout(d time.Duration) (uint32, error) { return seconds("timeout", min(d, longestWait)) }

// count returns a limit as an argument of the protocol.
func count(limit int) (uint32, error) {
	if limit < 1 {
		return 0, fmt.Errorf("%w: a limit of %d jobs: want 1 or more, or All", ErrInvalid, limit)
	}
	return uint32(min(uint64(limit), math.MaxUint32)), nil
}

// CheckTube returns [ErrInvalid] if tube is not a valid tube name: 1 to 200 letters,
// digits and bytes of -+/;.$_(), not starting with a hyphen.
func CheckTube(tube string) error {
	if !wire.ValidTube([]byte(tube)) { // does not allocate for short names
		return fmt.Errorf("%w: tube %q: want 1 to %d letters, digits and -+/;.$_(), the first not a hyphen", ErrInvalid, tube, wire.MaxTube)
	}
	return nil
}
