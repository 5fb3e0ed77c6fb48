package ledger

import (
	"iter"
	"maps"
	"strings"
	"testing"
)

// Each lie is found, and what is in doubt is none.
func TestLedger(t *testing.T) {
	type ids = map[string]uint64
	check := func(l *Ledger[string], queue ids) error { return l.Check(maps.All(queue), l.Now()) }
	for _, test := range []struct {
		what, wrong string // wrong: of what is said; empty: nothing is wrong
		then        func(l *Ledger[string]) error
	}{
		{"all is there", "", func(l *Ledger[string]) error { return check(l, ids{"a": 1, "b": 2}) }},
		{"a put in doubt has happened", "", func(l *Ledger[string]) error { return check(l, ids{"a": 1, "b": 2, "c": 3}) }},
		{"a job is lost", `"b" is lost`, func(l *Ledger[string]) error { return check(l, ids{"a": 1}) }},
		{"a job is doubled", `"b" is there twice`, func(l *Ledger[string]) error {
			return l.Check(twice(ids{"a": 1, "b": 2}), l.Now())
		}},
		{"a body has changed", `"B", with id 2, was never put`, func(l *Ledger[string]) error {
			return check(l, ids{"a": 1, "b": 2, "B": 2})
		}},
		{"an id has changed", `"b" has the id 7, and had 2`, func(l *Ledger[string]) error { return check(l, ids{"a": 1, "b": 7}) }},
		{"an id is given out twice", "id 2 is given out twice", func(l *Ledger[string]) error {
			l.Inserted("c", 2)
			return l.Err()
		}},
		{"an id is given out that a restart has shown", "id 3 is given out twice", func(l *Ledger[string]) error {
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
		{"a delete in doubt has happened", "", func(l *Ledger[string]) error {
			l.Delete("a")
			return check(l, ids{"b": 2})
		}},
		{"a delete in doubt has not happened", "", func(l *Ledger[string]) error {
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
		{"a job of nobody is reserved", `"d", with id 9, was never put`, func(l *Ledger[string]) error {
			l.Shown("d", 9, l.Now())
			return l.Err()
		}},
		{"a question crosses a put", "", func(l *Ledger[string]) error {
			sent := l.Now()
			l.Inserted("c", 3)
			return l.Check(maps.All(ids{"a": 1, "b": 2}), sent)
		}},
		{"a question does not see the put before it", `"c" is lost`, func(l *Ledger[string]) error {
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
		{"a restart undoes a put in doubt, and it happens", `"c" was deleted and is back`, func(l *Ledger[string]) error {
			if err := l.Restarted(maps.All(ids{"a": 1, "b": 2})); err != nil {
				return err
			}
			return check(l, ids{"a": 1, "b": 2, "c": 3})
		}},
		{"a restart undoes a delete in doubt, and it happens", `"a" is lost`, func(l *Ledger[string]) error {
			l.Delete("a")
			if err := l.Restarted(maps.All(ids{"a": 1, "b": 2})); err != nil {
				return err
			}
			return check(l, ids{"b": 2})
		}},
		{"a restart does a put in doubt, and it is lost", `"c" is lost`, func(l *Ledger[string]) error {
			if err := l.Restarted(maps.All(ids{"a": 1, "b": 2, "c": 3})); err != nil {
				return err
			}
			return check(l, ids{"a": 1, "b": 2})
		}},
		{"what was wrong before is not forgotten", "was never put", func(l *Ledger[string]) error {
			l.Delete("d")
			return check(l, ids{"a": 1, "b": 2})
		}},
	} {
		l := New[string]() // a and b are put, and c in doubt
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

// twice is a queue that shows all its jobs twice.
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
