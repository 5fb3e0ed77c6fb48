// Package list sorts elements and collects one page. It stores only about as many
// elements as fit on the page.
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
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Key is a sort key: a number, then a string.
type Key struct {
	N int64  `json:",omitempty"`
	S string `json:",omitempty"`
}

func compare(a, b Key) int { return cmp.Or(cmp.Compare(a.N, b.N), cmp.Compare(a.S, b.S)) }

// A rank is a position in an order.
type rank struct{ Key, Tie Key }

// Columns are sort columns.
type Columns[T any] struct {
	By      map[string]func(*T) Key
	Tie     func(*T) Key // unique key of an element, which orders elements with equal keys; ascending
	TieName string       // the name of Tie as a column; its order can be descending
}

// A Query collects a page.
type Query[T any] struct {
	Column   string       // without a leading -
	Key      func(*T) Key // can be replaced before the first Show
	Matching uint64       // number of elements passed to Show, on all pages

	columns    *Columns[T]
	n          int
	descending bool
	after      *rank // nil for the first page
	best       First[ranked[T]]
}

// A ranked is an element with its position.
type ranked[T any] struct {
	rank
	thing T
}

// ErrCursor means that a cursor does not come from a page.
var ErrCursor = errors.New("cursor: want the value of next from a page, or nothing")

// Query returns a query for the first n elements in the order of a column, after a
// cursor. A - before the column means descending. An empty cursor means the start.
func (c *Columns[T]) Query(sort, cursor string, n int) (*Query[T], error) {
	q := &Query[T]{columns: c, n: n}
	q.Column, q.descending = strings.CutPrefix(cmp.Or(sort, c.TieName), "-")
	if q.Key = c.By[q.Column]; q.Key == nil {
		return nil, fmt.Errorf("sort: want one of %v, with - before it to sort in descending order", slices.Sorted(maps.Keys(c.By)))
	}
	if cursor != "" {
		after, err := parseCursor(cursor)
		if err != nil {
			return nil, err
		}
		q.after = &after
	}
	// Collect one element more than a page, to detect whether there is another page.
	q.best = First[ranked[T]]{N: n + 1, Compare: func(a, b ranked[T]) int { return q.compare(a.rank, b.rank) }}
	return q, nil
}

func (q *Query[T]) compare(a, b rank) int {
	byKey, byTie := compare(a.Key, b.Key), compare(a.Tie, b.Tie)
	if q.descending {
		byKey = -byKey
		if q.Column == q.columns.TieName {
			byTie = -byTie
		}
	}
	return cmp.Or(byKey, byTie)
}

// Show adds a matching element. It copies the element if it can be on the page.
func (q *Query[T]) Show(x *T) {
	q.Matching++
	at := rank{q.Key(x), q.columns.Tie(x)}
	if (q.after == nil || q.compare(at, *q.after) > 0) && q.best.Wants(ranked[T]{rank: at}) {
		q.best.Show(ranked[T]{at, *x})
	}
}

// Page returns the elements of the page and the cursor of the next page. The cursor is
// empty on the last page.
func (q *Query[T]) Page() (page []T, next string) {
	found := q.best.Sorted()
	if len(found) > q.n {
		found = found[:q.n]
		next = cursorOf(found[q.n-1].rank)
	}
	page = make([]T, len(found))
	for i := range found {
		page[i] = found[i].thing
	}
	return page, next
}

// encoding of cursors needs no escaping in a query.
var encoding = base64.RawURLEncoding

func cursorOf(at rank) string {
	text, _ := json.Marshal(at) // always has a JSON form
	return encoding.EncodeToString(text)
}

func parseCursor(cursor string) (at rank, err error) {
	text, _ := encoding.DecodeString(cursor)
	if json.Unmarshal(text, &at) != nil || cursorOf(at) != cursor {
		return at, ErrCursor
	}
	return at, nil
}
