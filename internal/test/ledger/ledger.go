// Package ledger is the account of what the clients of a queue asked for and were told, and says
// what a queue may therefore not show: an acknowledged job that is lost or there twice, a
// deleted job that is back, an id that belongs to two jobs, a job that nobody has put.
//
// A test enters each put and each delete twice: when it is sent, and when it is
// acknowledged. What was sent and not acknowledged is in doubt: it may happen at any later time, or never,
// until all connections have ended ([Ledger.Restarted]). What a queue shows is then held against
// what was acknowledged before the question was sent.
package ledger

import (
	"errors"
	"fmt"
	"iter"
	"sync"
)

// A Ledger knows jobs by keys that the test gives them, such as bodies that are all
// different. Its methods may be called by all clients at once. An id of 0 is one that is not known.
type Ledger[K comparable] struct {
	mu     sync.Mutex
	clock  uint64 // grows with each entry
	jobs   map[K]*job
	owners map[uint64]K // of all ids that were given out
	wrong  error        // what was found first

	puts, deletes int // acknowledged
}

// A job is what clients know of one. Moments are those of the clock; 0 is never.
type job struct {
	id       uint64
	put      uint64 // when the put was acknowledged
	deleting bool   // a delete was sent, and may happen or have happened
	deleted  uint64 // when a delete was acknowledged
	cleared  bool   // it may be deleted at any time, without an entry
}

// New returns a ledger without jobs.
func New[K comparable]() *Ledger[K] {
	return &Ledger[K]{jobs: make(map[K]*job), owners: make(map[uint64]K)}
}

// Now returns the moment of the last entry: a question that is sent now must
// see what was acknowledged until then.
func (l *Ledger[K]) Now() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clock
}

// Err returns the first thing that was wrong in what clients were told.
func (l *Ledger[K]) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wrong
}

// Acknowledged returns how many puts and deletes were acknowledged.
func (l *Ledger[K]) Acknowledged() (puts, deletes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.puts, l.deletes
}

// InDoubt returns of how many jobs a delete was sent and never acknowledged.
func (l *Ledger[K]) InDoubt() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range l.jobs {
		if j.deleting && j.deleted == 0 {
			n++
		}
	}
	return n
}

// IsPut reports whether the put of a job was acknowledged.
func (l *Ledger[K]) IsPut(key K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.jobs[key] != nil && l.jobs[key].put != 0
}

// Put notes that a put is sent.
func (l *Ledger[K]) Put(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.jobs[key] != nil {
		l.failed(fmt.Errorf("the test puts %s twice", name(key)))
	}
	l.jobs[key] = new(job)
}

// Inserted notes that a put was acknowledged.
func (l *Ledger[K]) Inserted(key K, id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock++
	l.puts++
	l.jobs[key].put = l.clock
	l.failed(l.identify(key, id))
}

// Clear notes that a job may be deleted from now on without a word to this ledger.
func (l *Ledger[K]) Clear(key K) { l.change(key, func(j *job) { j.cleared = true }) }

// Delete notes that the delete of a job is sent.
func (l *Ledger[K]) Delete(key K) { l.change(key, func(j *job) { j.deleting = true }) }

// Deleted notes that a delete was acknowledged, which happens once.
func (l *Ledger[K]) Deleted(key K) {
	l.change(key, func(j *job) {
		if j.deleted != 0 {
			l.failed(fmt.Errorf("%s was deleted twice", name(key)))
		}
		l.deletes++
		j.deleting, j.deleted = true, l.clock
	})
}

// Shown notes that a client was shown a job, such as by a reserve, in answer to
// what it sent at some moment.
func (l *Ledger[K]) Shown(key K, id, sent uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed(l.mayBe(key, id, sent))
}

// Check holds a whole queue, as keys and ids, against what was acknowledged before a question was
// sent, and returns all that is wrong, if only in what clients were told before.
func (l *Ledger[K]) Check(queue iter.Seq2[K, uint64], sent uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	errs := []error{l.wrong}
	found := make(map[K]bool)
	for key, id := range queue {
		errs = append(errs, l.mayBe(key, id, sent))
		if found[key] {
			errs = append(errs, fmt.Errorf("%s is there twice", name(key)))
		}
		found[key] = true
	}
	for key, j := range l.jobs {
		if !found[key] && j.put != 0 && j.put <= sent && !j.deleting && !j.cleared {
			errs = append(errs, fmt.Errorf("%s is lost, whose put was acknowledged, with id %d", name(key), j.id))
		}
	}
	return errors.Join(errs...)
}

// Restarted is [Ledger.Check] when all connections have ended. What was in doubt has happened, or
// never will: from now on the queue is what it shows.
func (l *Ledger[K]) Restarted(queue iter.Seq2[K, uint64]) error {
	ids := make(map[K]uint64)
	err := l.Check(func(yield func(K, uint64) bool) {
		for key, id := range queue {
			ids[key] = id
			if !yield(key, id) {
				return
			}
		}
	}, l.Now())
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock++
	for key, j := range l.jobs {
		id, found := ids[key]
		switch {
		case found:
			j.put, j.deleting = l.clock, false
			l.failed(l.identify(key, id))
		case j.deleted == 0:
			j.deleted = l.clock
		}
	}
	return l.wrong
}

// change changes what is known of a job that was put.
func (l *Ledger[K]) change(key K, how func(*job)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock++
	if j := l.jobs[key]; j != nil {
		how(j)
	} else {
		l.failed(fmt.Errorf("%s was put by nobody", name(key)))
	}
}

// mayBe returns why a job cannot be shown in answer to what was sent at some moment.
func (l *Ledger[K]) mayBe(key K, id, sent uint64) error {
	j := l.jobs[key]
	switch {
	case j == nil:
		return fmt.Errorf("%s, with id %d, was put by nobody", name(key), id)
	case j.deleted != 0 && j.deleted <= sent:
		return fmt.Errorf("%s was deleted and is back, with id %d", name(key), id)
	case j.id != 0 && id != 0 && j.id != id:
		return fmt.Errorf("%s has the id %d, and had %d", name(key), id, j.id)
	}
	return nil
}

// identify notes the id of a job, which no other job may have had.
func (l *Ledger[K]) identify(key K, id uint64) error {
	if id == 0 {
		return nil
	}
	if other, given := l.owners[id]; given && other != key {
		return fmt.Errorf("id %d is given out twice, for %s and %s", id, name(other), name(key))
	}
	if err := l.mayBe(key, id, 0); err != nil {
		return err
	}
	l.owners[id], l.jobs[key].id = key, id
	return nil
}

// failed notes the first error.
func (l *Ledger[K]) failed(err error) {
	if l.wrong == nil {
		l.wrong = err
	}
}

// name is the beginning of a key, for people.
func name[K comparable](key K) string {
	s := fmt.Sprint(key)
	return fmt.Sprintf("job %q", s[:min(len(s), 40)])
}
