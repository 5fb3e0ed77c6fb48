package ledger

import (
	"iter"
	"maps"
	"strings"
	"testing"
)

// The ledger detects each kind of contradiction, and accepts requests that are in doubt.
func TestLedger(t *testing.T) {
	type ids = map[string]uint64
	check := func(l *Ledger[string], queue ids) error { return l.Check(maps.All(queue), l.Now()) }
	for _, test := range []struct {
		what, wrong string // wrong is a part of the expected error, or "" for none
		then        func(l *Ledger[string]) error
	}{
		{"all jobs exist", "", func(l *Ledger[string]) error { return check(l, ids{"a": 1, "b": 2}) }},
		{"a put in doubt was executed", "", func(l *Ledger[string]) error { return check(l, ids{"a": 1, "b": 2, "c": 3}) }},
		{"a job is lost", `"b" is lost`, func(l *Ledger[string]) error { return check(l, ids{"a": 1}) }},
		{"a job exists twice", `"b" exists twice`, func(l *Ledger[string]) error {
			return l.Check(twice(ids{"a": 1, "b": 2}), l.Now())
		}},
		{"a body changed", `"B", with id 2, was never put`, func(l *Ledger[string]) error {
			return check(l, ids{"a": 1, "b": 2, "B": 2})
		}},
		{"an id changed", `"b" has id 7, want 2`, func(l *Ledger[string]) error { return check(l, ids{"a": 1, "b": 7}) }},
		{"an id is used twice", "id 2 is used twice", func(l *Ledger[string]) error {
			l.Inserted("c", 2)
			return l.Err()
		}},
		{"an id that a restart has shown is used again", "id 3 is used twice", func(l *Ledger[string]) error {
			if err := l.Restarted(maps.All(ids{"a": 1, "b": 2, "c": 3})); err != nil {
				return err
			}
			l.Put("d")
			l.Inserted("d", 3)
			return l.Err()
		}},
		{"a key is used twice", "puts job \"a\" twice", func(l *Ledger[string]) error {
			l.Put("a")
			return l.Err()
		}},
		{"a delete in doubt was executed", "", func(l *Ledger[string]) error {
			l.Delete("a")
			return check(l, ids{"b": 2})
		}},
		{"a delete in doubt was not executed", "", func(l *Ledger[string]) error {
			l.Delete("a")
			return check(l, ids{"a": 1, "b": 2})
		}},
		{"a deleted job is back", `"a" was deleted and is back`, func(l *Ledger[string]) error {
			l.Deleted("a")
			return check(l, ids{"a": 1, "b": 2})
		}},
		{"a job is deleted twice", `"a" was deleted twice`, func(l *Ledger[string]) error {
			l.Deleted("a")
			l.Deleted("a")
			return check(l, ids{"b": 2})
		}},
		{"a reserve crosses a delete", "", func(l *Ledger[string]) error {
			sent := l.Now()
			l.Deleted("a")
			l.Shown("a", 1, sent)
			return l.Err()
		}},
		{"a deleted job is reserved", `"a" was deleted and is back`, func(l *Ledger[string]) error {
			l.Deleted("a")
			l.Shown("a", 1, l.Now())
			return l.Err()
		}},
		{"a job that no client put is reserved", `"d", with id 9, was never put`, func(l *Ledger[string]) error {
			l.Shown("d", 9, l.Now())
			return l.Err()
		}},
		{"a request crosses a put", "", func(l *Ledger[string]) error {
			sent := l.Now()
			l.Inserted("c", 3)
			return l.Check(maps.All(ids{"a": 1, "b": 2}), sent)
		}},
		{"a request does not see an earlier put", `"c" is lost`, func(l *Ledger[string]) error {
			l.Inserted("c", 3)
			return check(l, ids{"a": 1, "b": 2})
		}},
		{"a job is cleared", "", func(l *Ledger[string]) error {
			l.Clear("a")
			return l.Restarted(maps.All(ids{"b": 2}))
		}},
		{"a cleared job is back", `"a" was deleted and is back`, func(l *Ledger[string]) error {
			l.Clear("a")
			if err := l.Restarted(maps.All(ids{"b": 2})); err != nil {
				return err
			}
			return check(l, ids{"a": 1, "b": 2})
		}},
		{"a put in doubt is executed after a restart has undone it", `"c" was deleted and is back`, func(l *Ledger[string]) error {
			if err := l.Restarted(maps.All(ids{"a": 1, "b": 2})); err != nil {
				return err
			}
			return check(l, ids{"a": 1, "b": 2, "c": 3})
		}},
		{"a delete in doubt is executed after a restart has undone it", `"a" is lost`, func(l *Ledger[string]) error {
			l.Delete("a")
			if err := l.Restarted(maps.All(ids{"a": 1, "b": 2})); err != nil {
				return err
			}
			return check(l, ids{"b": 2})
		}},
		{"a job with a put in doubt is lost after a restart has shown it", `"c" is lost`, func(l *Ledger[string]) error {
			if err := l.Restarted(maps.All(ids{"a": 1, "b": 2, "c": 3})); err != nil {
				return err
			}
			return check(l, ids{"a": 1, "b": 2})
		}},
		{"an earlier contradiction is reported again", "was never put", func(l *Ledger[string]) error {
			l.Delete("d")
			return check(l, ids{"a": 1, "b": 2})
		}},
	} {
		l := New[string]() // a and b are put, and c is in doubt
		for _, key := range []string{"a", "b", "c"} {
			l.Put(key)
		}
		l.Inserted("a", 1)
		l.Inserted("b", 2)
		switch err := test.then(l); {
		case test.wrong == "" && err != nil:
			t.Errorf("%s: %v", test.what, err)
		case test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)):
			t.Errorf("%s: %v, want %s", test.what, err, test.wrong)
		}
	}
}

// twice returns a queue that contains each job twice.
func twice(queue map[string]uint64) iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for range 2 {
			for key, id := range queue {
				if !yield(key, id) {
					return
				}
			}
		}
	}
}
