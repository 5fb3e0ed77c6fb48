package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// A Mux has a handler for each tube, by its name:
//
//	mux := worker.Mux{"mail": sendMail, "thumbnails": shrink}
//	w, err := worker.New(mux.Handle, &worker.Options{Tubes: mux.Tubes()})
//
// A reserved job does not say which tube it is from. So a Mux of several tubes asks for the
// statistics of each job, which takes a round trip. Where that matters, run a worker for
// each tube: that also gives each tube workers of its own.
type Mux map[string]Handler

// Tubes returns the names of the tubes, for [Options].Tubes.
func (m Mux) Tubes() []string { return slices.Sorted(maps.Keys(m)) }

// Handle is the [Handler] of all tubes. A job from any other tube fails.
func (m Mux) Handle(ctx context.Context, job *Job) error {
	if len(m) == 1 {
		for _, handle := range m {
			return handle(ctx, job)
		}
	}
	st, err := job.Stats(ctx)
	if err != nil {
		return err
	}
	handle := m[st.Tube]
	if handle == nil {
		return fmt.Errorf("worker: there is no handler for the tube %s", st.Tube)
	}
	return handle(ctx, job)
}
