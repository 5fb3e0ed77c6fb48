package journal

import "sync"

// background runs one function at a time in a goroutine.
type background struct {
	mu   sync.Mutex
	busy bool
	err  error // of the last one
	wg   sync.WaitGroup
}

// start runs f unless one is running.
func (b *background) start(f func() error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy {
		return
	}
	b.busy = true
	b.wg.Go(func() {
		err := f()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.busy, b.err = false, err
	})
}

// running tells whether a function is running.
func (b *background) running() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.busy
}

// ended returns the error of the last function, once, or that it is still running.
func (b *background) ended() (busy bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	err, b.err = b.err, nil
	return b.busy, err
}

func (b *background) wait() { b.wg.Wait() }
