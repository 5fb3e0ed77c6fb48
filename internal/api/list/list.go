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
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Key is a sort key: a number, then a text.
type Key struct {
	N int64
	S string
}

func compare(a, b Key) int { return cmp.Or(cmp.Compare(a.N, b.N), cmp.Compare(a.S, b.S)) }

// A rank is a position in an order.
type rank struct{ key, tie Key }

// Columns are sort columns.
type Columns[T any] struct {
	By      map[string]func(*T) Key
	Tie     func(*T) Key // unique key of an element, which orders elements with equal keys; ascending
	TieName string       // the name of Tie as a column; its order can be descending
	Numbers bool         // ties are numbers, not texts
	TieOnly bool         // there is no other column, so cursors contain only a tie
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
		return nil, fmt.Errorf("sort: want one of %v, with - before it for the largest first", slices.Sorted(maps.Keys(c.By)))
	}
	if cursor != "" {
		after, err := c.parse(cursor)
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
	byKey, byTie := compare(a.key, b.key), compare(a.tie, b.tie)
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
		next = q.columns.cursor(found[q.n-1].rank)
	}
	page = make([]T, len(found))
	for i := range found {
		page[i] = found[i].thing
	}
	return page, next
}

// encoding of cursors needs no escaping in a query.
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
	if err != nil || !ok || c.cursor(at) != cursor { // the text was not created from a cursor
		return at, ErrCursor
	}
	return at, nil
}
