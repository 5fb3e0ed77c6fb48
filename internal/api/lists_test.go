package api

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/engine"
)

// Jobs of every state are listed in order, page by page, and each job once.
func TestPagesOfJobs(t *testing.T) {
	const jobs = 600 // more jobs than one turn lists
	r := start(t, Options{})
	r.in(func(e *engine.Engine, now int64) {
		s := e.Open(nil)
		for i := range uint32(4 * jobs) {
			spec := engine.Spec{Pri: i * 7919 % 10, TTR: 6000 + i*7919%50}
			if i%4 == 1 {
				spec.Delay = 6000 + i*7919%50
			}
			id, _ := e.PutInto(now, []byte("mail"), spec, nil)
			switch i % 4 {
			case 2:
				e.BuryJob(id, spec.Pri)
			case 3:
				e.ReserveJob(now, s, id)
			}
		}
	})
	for state, key := range map[string]func(admin.Job) uint64{
		"ready":    func(j admin.Job) uint64 { return uint64(j.Priority)<<32 + j.ID },
		"delayed":  func(j admin.Job) uint64 { return uint64(j.Delay)<<32 + j.ID },
		"buried":   func(j admin.Job) uint64 { return j.ID },
		"reserved": func(j admin.Job) uint64 { return uint64(j.TTR)<<32 + j.ID },
	} {
		for _, n := range []int{1000, 250, 77} {
			var keys []uint64
			cursor := ""
			for pages := 0; ; pages++ {
				var page admin.Jobs
				r.want(200, "GET", fmt.Sprintf("/tubes/mail/jobs?state=%s&limit=%d&cursor=%s", state, n, url.QueryEscape(cursor)), "", &page)
				for _, j := range page.Jobs {
					if j.State != state {
						t.Fatalf("%s: job %d is %s", state, j.ID, j.State)
					}
					keys = append(keys, key(j))
				}
				if cursor = page.Next; cursor == "" {
					break
				}
			}
			if len(keys) != jobs || !slices.IsSorted(keys) {
				t.Errorf("%s, %d a page: %d jobs, sorted %v", state, n, len(keys), slices.IsSorted(keys))
			}
		}
	}
}

// Each listed job has its own body, and large bodies shorten a page.
func TestPagesWithBodies(t *testing.T) {
	r := start(t, Options{})
	bodies := []string{"text", "\xff\xfe", "", strings.Repeat("x", largestBody+1), strings.Repeat("y", largestBody/2), strings.Repeat("z", largestBody/2), "last"}
	r.in(func(e *engine.Engine, now int64) {
		for _, body := range bodies {
			e.PutInto(now, []byte("mail"), engine.Spec{}, []byte(body))
		}
	})
	var got, sizes []int
	for cursor, more := "", true; more; more = cursor != "" {
		var page admin.Jobs
		r.want(200, "GET", "/tubes/mail/jobs?state=ready&bodies=true&cursor="+cursor, "", &page)
		for _, j := range page.Jobs {
			want := bodies[j.ID-1]
			shown := string(j.Bytes())
			if len(want) > largestBody {
				want = ""
			} else if (j.Body != nil) == (j.BodyBase64 != nil) {
				t.Errorf("job %d: want one of body and body_base64", j.ID)
			}
			if shown != want {
				t.Errorf("job %d has the body %.20q, want %.20q", j.ID, shown, want)
			}
			got = append(got, int(j.ID))
		}
		sizes = append(sizes, len(page.Jobs))
		cursor = page.Next
	}
	if !slices.Equal(got, []int{1, 2, 3, 4, 5, 6, 7}) || !slices.Equal(sizes, []int{6, 1}) {
		t.Errorf("jobs %v on pages of %v", got, sizes)
	}
	if list := r.want(200, "GET", "/tubes/mail/jobs?state=ready&bodies=false", "", nil); strings.Contains(list, `"body`) {
		t.Error("the list has bodies without a request for them")
	}
}

// The last turn of a page ends after the page's last job, even if the tube contains more.
func TestShortPage(t *testing.T) {
	r := start(t, Options{})
	r.in(func(e *engine.Engine, now int64) {
		for range 100 {
			e.PutInto(now, []byte("mail"), engine.Spec{TTR: 9}, nil)
		}
		w := jobScan{places: placesOf([]string{"mail"}, allStates[:1]), page: 3}
		if more := w.next(e, now); more || len(w.slice) != 3 {
			t.Errorf("%d jobs in the first turn, and more: %v", len(w.slice), more)
		}
	})
}
