package console

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// recent has what was made last of each of several things. Who wants something younger makes it for all who ask meanwhile.
type recent[K comparable, V any] struct {
	forgets bool // what is too old; else that is shown until there is something younger
	asked   singleflight.Group

	mu   sync.Mutex
	made map[K]dated[V]
}

type dated[V any] struct {
	value V
	at    time.Time
}

// of returns what was made last, and what to wait for if that is too old. Then something is made, of what was there before.
func (c *recent[K, V]) of(key K, anew func(before V) (V, error)) (last V, younger <-chan singleflight.Result) {
	last, ok := c.last(key)
	if ok {
		return last, nil
	}
	return last, c.asked.DoChan(fmt.Sprint(key), func() (any, error) {
		before, ok := c.last(key)
		if ok { // it was made since
			return before, nil
		}
		v, err := anew(before)
		if err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.made[key] = dated[V]{v, time.Now()}
		}
		return v, err
	})
}

// last returns what was made last, and whether it is no older than lists of tubes may be.
func (c *recent[K, V]) last(key K) (last V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	isOld := func(_ K, one dated[V]) bool { return time.Since(one.at) > tubesAge }
	if c.forgets {
		maps.DeleteFunc(c.made, isOld)
	}
	one := c.made[key]
	return one.value, !isOld(key, one)
}
