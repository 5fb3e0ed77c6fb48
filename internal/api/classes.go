package api

import (
	"cmp"
	"slices"
	"time"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/decode"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// listClasses counts the classes among a tube's first jobs in a given state.
func (r *request) listClasses(in *admin.ListClasses) (out admin.Classes, err error) {
	state, err := parseState(in.State, allStates...)
	if err != nil {
		return out, err
	}
	_, total, err := r.searched([]string{r.tube}, &search{states: []engine.State{state}})
	if err != nil {
		return out, err
	}
	out.Total = *total
	end, err := r.beginScan(aPage)
	if err != nil {
		return out, err
	}
	defer end()
	by := make(map[string]*admin.Class)
	w := jobScan{places: []place{{r.tube, state}}, bodies: searchedBytes, page: in.Limit}
	out.Sampled, err = r.sample(&w, timePerSearch, func(j *scannedJob) {
		name := decode.Class(j.body)
		c := by[name]
		if c == nil {
			c = &admin.Class{Class: name, Newest: j.Age}
			by[name] = c
		}
		c.Jobs++
		c.Oldest, c.Newest = max(c.Oldest, j.Age), min(c.Newest, j.Age)
	})
	out.Classes = make([]admin.Class, 0, len(by))
	for _, c := range by {
		out.Classes = append(out.Classes, *c)
	}
	slices.SortFunc(out.Classes, func(a, b admin.Class) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Class, b.Class))
	})
	return out, err
}

// sample calls tell for the jobs of a scan, within a time limit and within the other
// budgets of a search page. It returns the number of these jobs.
func (r *request) sample(w *jobScan, most time.Duration, tell func(*scannedJob)) (jobs uint64, err error) {
	rd, bytes := r.reading(), 0
	defer rd.end()
	err = r.scan(w, func(slice []scannedJob) bool {
		for i := range slice {
			if !rd.goOn() || rd.spent >= most || bytes >= bytesPerSearch || jobs >= jobsPerSearch {
				return false
			}
			tell(&slice[i])
			bytes += len(slice[i].body)
			jobs++
		}
		rd.end()
		return true
	})
	return jobs, err
}
