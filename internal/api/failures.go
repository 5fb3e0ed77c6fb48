package api

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/decode"
	"github.com/beanpole-mq/beanpole/internal/engine"
	"github.com/beanpole-mq/beanpole/internal/query"
)

// failedStates are the states of failed jobs, in the order of the sample.
var failedStates = []engine.State{engine.Buried, engine.Delayed, engine.Ready}

const (
	// timePerFailures is the time after which the sample of failed jobs ends. The sample
	// has no next page, so it gets more time than a page of a search.
	timePerFailures = 500 * time.Millisecond

	// sampledFailures is the intended size of the sample. Each tube and state has an equal
	// share, at least leastOfPlace, or has fewer jobs and leaves the rest to the others.
	sampledFailures = 20_000
	leastOfPlace    = 100
)

// reasonOf returns the reason of a job's last failure: the worker's text, the error in
// the body, or the way in which the attempt ended. It returns an empty string for a job
// that has not failed, and for a buried job that was kicked or redriven: such a job
// starts again with all its attempts.
func reasonOf(j *scannedJob) string {
	f, _ := j.Failure()
	switch text := cmp.Or(f.Note, decode.Reason(j.body)); {
	case f.Buried != 0 && j.State != engine.Buried: // no attempt has ended since
		return ""
	case text != "":
		return text
	case f.End == engine.Taken && j.State != engine.Buried: // taken by an operator
		return ""
	case f.End != 0:
		return f.End.String()
	case j.State == engine.Buried:
		return cmp.Or(f.Policy, "buried")
	}
	return ""
}

// varying matches numbers and ids in a reason.
var varying = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|0x[0-9a-fA-F]+|\b[a-fA-F]*[0-9][0-9a-fA-F]{7,}\b|[0-9]+`)

// fairShare returns the largest number such that the counts, each limited to that number,
// have a sum of at most total. It sorts the counts.
func fairShare(counts []uint64, total uint64) int {
	slices.Sort(counts)
	for i, n := range counts {
		if left := uint64(len(counts) - i); n > total/left {
			return int(total / left)
		}
		total -= n
	}
	return math.MaxInt
}

// listFailures groups the failed jobs of a sample.
func (r *request) listFailures(in *admin.ListFailures) (out admin.Failures, err error) {
	s := &search{states: failedStates}
	if in.Tube != "" {
		s.tubes = strings.Split(in.Tube, ",")
	}
	tubes, total, err := r.searched(nil, s)
	if err != nil {
		return out, err
	}
	end, err := r.beginScan(aPage)
	if err != nil {
		return out, err
	}
	defer end()
	out.Total = total
	w := jobScan{bodies: searchedBytes}
	var counts []uint64
	places := make([][]place, len(failedStates))
	err = each(r, tubes, func(e *engine.Engine, now int64, tube string) error {
		st, _ := e.TubeStats(now, []byte(tube))
		for i, state := range failedStates {
			if n := countOf([]engine.State{state}, st.Ready, st.Reserved, st.Delayed, st.Buried); n > 0 {
				counts = append(counts, n)
				places[i] = append(places[i], place{tube, state})
			}
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	w.places = slices.Concat(places...)
	w.page = max(leastOfPlace, fairShare(counts, sampledFailures))
	type key struct{ tube, state, class, reason string }
	by := make(map[key]*admin.FailureGroup)
	out.Looked, err = r.sample(&w, timePerFailures, func(j *scannedJob) {
		reason := reasonOf(j)
		if reason == "" {
			return
		}
		one := r.jobOf(&j.JobStats)
		k := key{tube: j.Tube, state: one.State, reason: varying.ReplaceAllString(reason, "*")}
		k.class = decode.Class(j.body)
		g := by[k]
		if g == nil {
			g = &admin.FailureGroup{Tube: k.tube, State: k.state, Origin: one.Origin, Class: k.class, Reason: k.reason}
			by[k] = g
		}
		g.Jobs++
		if f := one.Failure; f != nil {
			at := cmp.Or(f.At, f.Buried)
			g.First, g.Last = min(cmp.Or(g.First, at), at), max(g.Last, at)
		}
	})
	out.Found = len(by)
	out.Groups = make([]admin.FailureGroup, 0, len(by))
	for _, g := range by {
		class := "not class:*"
		if g.Class != "" {
			class = "class:" + query.Quote(g.Class)
		}
		g.Q = fmt.Sprintf("tube:%s state:%s reason=%s %s", g.Tube, g.State, query.Quote(g.Reason), class)
		out.Groups = append(out.Groups, *g)
	}
	slices.SortFunc(out.Groups, func(a, b admin.FailureGroup) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(b.Last, a.Last), strings.Compare(a.Q, b.Q))
	})
	out.Groups = out.Groups[:min(len(out.Groups), in.Limit)]
	return out, err
}
