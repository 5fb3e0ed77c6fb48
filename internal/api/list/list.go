// Package list makes pages of things that are in an order, of those that it is shown, and keeps no more of them than a page has.
//
//	q, err := columns.Query("-ready", cursor, 100)
//	for ... {
//		q.Show(&thing) // if it matches
//	}
//	page, next := q.Page()
package list

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Key is what things are compared by: a number, then a text.
type Key struct {
	N int64
	S string
}

func compare(a, b Key) int { return cmp.Or(cmp.Compare(a.N, b.N), cmp.Compare(a.S, b.S)) }

// A rank is the place of a thing in an order.
type rank struct{ key, tie Key }

// Columns are what things can be sorted by.
type Columns[T any] struct {
	By      map[string]func(*T) Key
	Tie     func(*T) Key // tells things with the same key apart; one is in its order, unless
	TieName string       // it is sorted by this column
	Numbers bool         // ties are numbers, and not texts
	TieOnly bool         // there is no other column: cursors have a tie only
}

// A Query is for a page.
type Query[T any] struct {
	Column   string       // without the - before it
	Key      func(*T) Key // may be replaced before anything is shown
	Matching uint64       // how many things were shown, on all pages

	columns    *Columns[T]
	n          int
	descending bool
	after      *rank // nil: from the first on
	best       First[ranked[T]]
}

// A ranked is a thing with its place in the order.
type ranked[T any] struct {
	rank
	thing T
}

// ErrCursor says that a cursor came with no page.
var ErrCursor = errors.New("cursor: want what a page has as next, or nothing")

// Query returns a query for the first n things in the order of a column, with - before it for the largest first, after a cursor; empty: from
// the first on.
func (c *Columns[T]) Query(sort, cursor string, n int) (*Query[T], error) {
	q := &Query[T]{columns: c, n: n}
	q.Column, q.descending = strings.CutPrefix(cmp.Or(sort, c.TieName), "-")
	if q.Key = c.By[q.Column]; q.Key == nil {
		return nil, fmt.Errorf("sort: want one of %v, with - before it for the largest first", slices.Sorted(maps.Keys(c.By)))
	}
	if cursor != "" {
		after, err := c.parse(cursor)
		if err != nil {
			return nil, err
		}
		q.after = &after
	}
	// One more shows whether there is another page.
	q.best = First[ranked[T]]{N: n + 1, Compare: func(a, b ranked[T]) int { return q.compare(a.rank, b.rank) }}
	return q, nil
}

func (q *Query[T]) compare(a, b rank) int {
	byKey, byTie := compare(a.key, b.key), compare(a.tie, b.tie)
	if q.descending {
		byKey = -byKey
		if q.Column == q.columns.TieName {
			byTie = -byTie
		}
	}
	return cmp.Or(byKey, byTie)
}

// Show tells of a thing that matches. It is copied if it may be on the page.
func (q *Query[T]) Show(x *T) {
	q.Matching++
	at := rank{q.Key(x), q.columns.Tie(x)}
	if (q.after == nil || q.compare(at, *q.after) > 0) && q.best.Wants(ranked[T]{rank: at}) {
		q.best.Show(ranked[T]{at, *x})
	}
}

// Page returns the things on the page, and the cursor of the next; empty: it is the last one.
func (q *Query[T]) Page() (page []T, next string) {
	found := q.best.Sorted()
	if len(found) > q.n {
		found = found[:q.n]
		next = q.columns.cursor(found[q.n-1].rank)
	}
	page = make([]T, len(found))
	for i := range found {
		page[i] = found[i].thing
	}
	return page, next
}

// encoding is that of cursors: some characters of names mean something in a query, and a script should not have to know.
var encoding = base64.RawURLEncoding

func (c *Columns[T]) cursor(at rank) string {
	switch {
	case c.TieOnly:
		return encoding.EncodeToString([]byte(at.tie.S))
	case c.Numbers:
		return encoding.EncodeToString(fmt.Appendf(nil, "%d %d %s", at.key.N, at.tie.N, at.key.S))
	}
	return encoding.EncodeToString(fmt.Appendf(nil, "%d %s", at.key.N, at.tie.S))
}

func (c *Columns[T]) parse(cursor string) (at rank, err error) {
	text, err := encoding.DecodeString(cursor)
	if c.TieOnly {
		text = append([]byte("0 "), text...)
	}
	key, rest, ok := strings.Cut(string(text), " ")
	if at.key.N, _ = strconv.ParseInt(key, 10, 64); !c.Numbers {
		at.tie.S = rest
	} else {
		tie := ""
		tie, at.key.S, _ = strings.Cut(rest, " ")
		at.tie.N, _ = strconv.ParseInt(tie, 10, 64)
	}
	if err != nil || !ok || c.cursor(at) != cursor { // it says something else, or says it in another way
		return at, ErrCursor
	}
	return at, nil
}
