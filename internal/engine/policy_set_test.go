package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
)

// prefixes implements policies whose run-time settings pause all tubes that start with
// the pattern.
type prefixes map[string]string

func (p prefixes) Of(tube string) *Policy {
	for pattern, settings := range p {
		if strings.HasPrefix(tube, pattern) && settings == "paused" {
			return &Policy{PausedUntil: math.MaxInt64}
		}
	}
	return nil
}

func (p prefixes) With(pattern, settings string) Policies {
	with := prefixes{pattern: settings}
	for pattern, settings := range p {
		if _, ok := with[pattern]; !ok {
			with[pattern] = settings
		}
	}
	return with
}

// Run-time settings are a change. They apply to existing and new tubes, and a restored
// engine applies them before it serves a client. A tube does not continue to exist
// because of its settings.
func TestSetPolicy(t *testing.T) {
	admitted := OK
	opt := Options{Logged: true, Policies: prefixes{}, Admit: func(kind ChangeKind, tube string, body int) Outcome {
		if kind == PolicySet && (tube != "m" || body != len("paused") && body != 0) {
			t.Errorf("admits %s with %d bytes", tube, body)
		}
		return admitted
	}}
	e := New(opt)
	s := e.Open(nil)
	put := func(e *Engine, s *Session, tube string) {
		e.Use(s, []byte(tube))
		e.Put(0, s, Spec{TTR: 5}, nil)
	}
	reserved := func(e *Engine, tube string) bool {
		w := e.Open(nil)
		e.Watch(w, []byte(tube))
		_, o := e.Reserve(0, w, 0)
		defer e.Close(0, w)
		return o == OK
	}
	put(e, s, "m1")
	admitted = OutOfMemory
	if o := e.SetPolicy("m", "paused"); o != OutOfMemory || e.SetPolicyOf("m") != "" {
		t.Errorf("a setting was made without space in the Log: %v", o)
	}
	admitted = OK
	if o := e.SetPolicy("m", "paused"); o != OK || e.SetPolicyOf("m") != "paused" {
		t.Errorf("set: %v", o)
	}
	for e.Tick(0); e.Next() <= 0; e.Tick(0) {
	}
	put(e, s, "m2")
	put(e, s, "other")
	if st, _ := e.TubeStats(0, []byte("m1")); st.Pause != math.MaxUint32 || st.PauseLeft != math.MaxUint32 || reserved(e, "m1") || reserved(e, "m2") || !reserved(e, "other") {
		t.Errorf("the tubes of the pattern are not paused, or others are: %+v", st)
	}
	changes := e.TakeChanges()
	n := 0
	for _, c := range changes {
		if c.Kind == PolicySet {
			n++
		}
	}
	after := New(opt)
	for _, c := range changes {
		after.Restore(c)
	}
	after.Inherit(e.Settings())
	after.Tick(0)
	if n != 1 || reserved(after, "m1") || reserved(after, "m2") || after.Digest(0, 0) != e.Digest(0, 0) {
		t.Errorf("an engine that restores the %d changes lacks the policy", n)
	}
	if e.SetPolicy("m", ""); len(slices.Collect(e.Named())) != 0 || after.Digest(0, 0) == e.Digest(0, 0) {
		t.Error("it is set still")
	}
	for e.Tick(0); e.Next() <= 0; e.Tick(0) {
	}
	if !reserved(e, "m1") {
		t.Error("the tube stays paused")
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
}

// The number of patterns is limited, and existing patterns can still be changed.
func TestMaxPolicies(t *testing.T) {
	e := New(Options{})
	for n := range MaxPolicies {
		if o := e.SetPolicy(fmt.Sprint("t", n), "x"); o != OK {
			t.Fatal(n, o)
		}
	}
	if e.SetPolicy("more", "x") != TooBig || e.SetPolicy("t1", "y") != OK || e.SetPolicy("t1", "") != OK || e.SetPolicy("more", "x") != OK {
		t.Error("the limit is exceeded, or applied below the limit")
	}
	if e.TubeNames().Len() != 1 {
		t.Error("policies have made tubes")
	}
}

// keyed implements policies that make the jobs of a tube with settings unique, by the
// body or by its first byte.
type keyed map[string]string

var uniquePolicies = map[string]*Policy{"body": {Unique: byBody}, "first": {Unique: byFirst}}

func (k keyed) Of(tube string) *Policy { return uniquePolicies[k[tube]] }

func (k keyed) With(pattern, settings string) Policies {
	with := maps.Clone(k)
	with[pattern] = settings
	return with
}

// Settings that change in each turn do not delay other settings, even with many tubes or
// jobs.
func TestSettingsThatChangeRepeatedly(t *testing.T) {
	const n = 2000
	e := New(Options{Policies: prefixes{}})
	e.workLimit = 10 * tickShare * lookupWork // ten tubes per turn
	for i := range n {
		e.PutInto(0, fmt.Appendf(nil, "m-%d", i), Spec{}, nil)
	}
	e.PutInto(0, []byte("pub"), Spec{}, nil)
	e.SetPolicy("m-", "paused")
	paused := func() (paused int) {
		for i := range n {
			st, _ := e.TubeStats(0, fmt.Appendf(nil, "m-%d", i))
			paused += int(count(st.Pause > 0))
		}
		return paused
	}
	for i := range 2 * n / 10 {
		e.Tick(0)
		e.SetPolicy("pub", []string{"", "paused"}[i%2])
	}
	if all := paused(); all != n {
		t.Errorf("%d of %d tubes have their policy", all, n)
	}

	e = New(Options{Policies: keyed{}})
	e.workLimit = 10 * tickShare * lookupWork
	for i := range n {
		e.PutInto(0, []byte("big"), Spec{}, fmt.Appendf(nil, "%d", i))
	}
	e.PutInto(0, []byte("pub"), Spec{}, nil)
	e.SetPolicy("big", "body")
	for i := range n {
		e.Tick(0)
		e.SetPolicy("pub", []string{"first", "body"}[i%2])
	}
	if _, all := e.KeysHeld(); all {
		t.Error("no pass is under way") // in that case the test checks nothing
	}
	for i := range n {
		if id, o := e.PutInto(0, []byte("big"), Spec{}, fmt.Appendf(nil, "%d", i)); o != Duplicate || id != uint64(i+1) {
			t.Fatalf("an equal of job %d is put: %v", i+1, o)
		}
	}
	for e.outdated() {
		e.Tick(0)
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
}
