// Package ledger records the requests of a queue's clients and the replies. It detects a
// queue that contradicts the replies: an acknowledged job is missing or exists twice, a
// deleted job exists again, two jobs have the same id, or a job was never put.
//
// A test records each put and each delete twice: when it is sent and when it is
// acknowledged. A request that was sent and not acknowledged is in doubt: the queue can
// execute it at any time, or never, until all connections have ended
// ([Ledger.Restarted]). The ledger compares the contents of a queue with the replies that
// arrived before the contents were requested.
package ledger

import (
	"errors"
	"fmt"
	"iter"
	"sync"
)

// A Ledger identifies jobs by the test's keys, such as bodies that are all different. Its
// methods are safe for concurrent use. An id of 0 means an unknown id.
type Ledger[K comparable] struct {
	mu     sync.Mutex
	clock  uint64 // incremented by each record
	jobs   map[K]*job
	owners map[uint64]K // owners of all ids that are or were in use
	wrong  error        // the first error

	puts, deletes int // numbers of acknowledged puts and deletes
}

// A job is the clients' view of a job. Times are values of clock; 0 means never.
type job struct {
	id       uint64
	put      uint64 // time of the put's acknowledgment
	deleting bool   // whether a delete was sent and might have been executed
	deleted  uint64 // time of a delete's acknowledgment
	cleared  bool   // whether the job can be deleted at any time without a record
}

// New returns a ledger without jobs.
func New[K comparable]() *Ledger[K] {
	return &Ledger[K]{jobs: make(map[K]*job), owners: make(map[uint64]K)}
}

// Now returns the time of the last record. A request sent now must reflect all replies up
// to that time.
func (l *Ledger[K]) Now() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clock
}

// Err returns the first contradiction among the replies.
func (l *Ledger[K]) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wrong
}

// Acknowledged returns the number of acknowledged puts and deletes.
func (l *Ledger[K]) Acknowledged() (puts, deletes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.puts, l.deletes
}

// IsPut reports whether the put of a job was acknowledged.
func (l *Ledger[K]) IsPut(key K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.jobs[key] != nil && l.jobs[key].put != 0
}

// Put records that a put is sent.
func (l *Ledger[K]) Put(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.jobs[key] != nil {
		l.failed(fmt.Errorf("the test puts %s twice", name(key)))
	}
	l.jobs[key] = new(job)
}

// Inserted records that a put was acknowledged.
func (l *Ledger[K]) Inserted(key K, id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock++
	l.puts++
	l.jobs[key].put = l.clock
	l.failed(l.identify(key, id))
}

// Clear records that the job can be deleted later without a record.
func (l *Ledger[K]) Clear(key K) { l.change(key, func(j *job) { j.cleared = true }) }

// Delete records that the delete of a job is sent.
func (l *Ledger[K]) Delete(key K) { l.change(key, func(j *job) { j.deleting = true }) }

// Deleted records that a delete was acknowledged. This must happen only once.
func (l *Ledger[K]) Deleted(key K) {
	l.change(key, func(j *job) {
		if j.deleted != 0 {
			l.failed(fmt.Errorf("%s was deleted twice", name(key)))
		}
		l.deletes++
		j.deleting, j.deleted = true, l.clock
	})
}

// Shown records that a client received a job, for example by a reserve, in reply to a
// request sent at the time sent.
func (l *Ledger[K]) Shown(key K, id, sent uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed(l.mayBe(key, id, sent))
}

// Check compares a whole queue, as keys and ids, with the replies before the time sent.
// It returns all contradictions, including those among earlier replies.
func (l *Ledger[K]) Check(queue iter.Seq2[K, uint64], sent uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	errs := []error{l.wrong}
	found := make(map[K]bool)
	for key, id := range queue {
		errs = append(errs, l.mayBe(key, id, sent))
		if found[key] {
			errs = append(errs, fmt.Errorf("%s exists twice", name(key)))
		}
		found[key] = true
	}
	for key, j := range l.jobs {
		if !found[key] && j.put != 0 && j.put <= sent && !j.deleting && !j.cleared {
			errs = append(errs, fmt.Errorf("%s is lost; its put was acknowledged with id %d", name(key), j.id))
		}
	}
	return errors.Join(errs...)
}

// Restarted is [Ledger.Check] after the end of all connections. It resolves all doubts,
// because the contents of the queue show which requests were executed.
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

// change changes the record of a job that was put.
func (l *Ledger[K]) change(key K, how func(*job)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock++
	if j := l.jobs[key]; j != nil {
		how(j)
	} else {
		l.failed(fmt.Errorf("%s was never put", name(key)))
	}
}

// mayBe returns the reason why a reply to a request sent at the time sent cannot contain
// a job, or nil.
func (l *Ledger[K]) mayBe(key K, id, sent uint64) error {
	j := l.jobs[key]
	switch {
	case j == nil:
		return fmt.Errorf("%s, with id %d, was never put", name(key), id)
	case j.deleted != 0 && j.deleted <= sent:
		return fmt.Errorf("%s was deleted and is back, with id %d", name(key), id)
	case j.id != 0 && id != 0 && j.id != id:
		return fmt.Errorf("%s has id %d, want %d", name(key), id, j.id)
	}
	return nil
}

// identify records the id of a job. It fails if another job has or had the id.
func (l *Ledger[K]) identify(key K, id uint64) error {
	if id == 0 {
		return nil
	}
	if other, given := l.owners[id]; given && other != key {
		return fmt.Errorf("id %d is used twice, for %s and %s", id, name(other), name(key))
	}
	if err := l.mayBe(key, id, 0); err != nil {
		return err
	}
	l.owners[id], l.jobs[key].id = key, id
	return nil
}

// failed records the first error.
func (l *Ledger[K]) failed(err error) {
	if l.wrong == nil {
		l.wrong = err
	}
}

// name returns the start of a key, for messages.
func name[K comparable](key K) string {
	s := fmt.Sprint(key)
	return fmt.Sprintf("job %q", s[:min(len(s), 40)])
}
