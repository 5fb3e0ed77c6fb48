package console

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// A ttlCache caches values by their keys. Concurrent callers that need a newer value
// share the call that creates it.
type ttlCache[K comparable, V any] struct {
	forgets bool // drop values that are too old; otherwise, they are shown until there is a newer value
	asked   singleflight.Group

	mu   sync.Mutex
	made map[K]dated[V]
}

type dated[V any] struct {
	value V
	at    time.Time
}

// of returns the cached value. If the value is too old, of also returns a channel for a
// new value, which anew creates.
func (c *ttlCache[K, V]) of(key K, anew func() (V, error)) (last V, younger <-chan singleflight.Result) {
	last, ok := c.last(key)
	if ok {
		return last, nil
	}
	return last, c.asked.DoChan(fmt.Sprint(key), func() (any, error) {
		if v, ok := c.last(key); ok { // another call created it
			return v, nil
		}
		v, err := anew()
		if err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.made[key] = dated[V]{v, time.Now()}
		}
		return v, err
	})
}

// last returns the cached value, and whether it is recent enough.
func (c *ttlCache[K, V]) last(key K) (last V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	isOld := func(_ K, one dated[V]) bool { return time.Since(one.at) > tubesAge }
	if c.forgets {
		maps.DeleteFunc(c.made, isOld)
	}
	one := c.made[key]
	return one.value, !isOld(key, one)
}
