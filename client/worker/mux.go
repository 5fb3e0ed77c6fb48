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
// A worker for each tube, instead, gives each tube workers of its own. With servers other
// than beanpole, which do not say which tube a job is from, it also saves the round trip
// in which a Mux of several tubes asks for that.
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
	tube := job.Tube
	if tube == "" {
		st, err := job.Stats(ctx)
		if err != nil {
			return err
		}
		tube = st.Tube
	}
	handle := m[tube]
	if handle == nil {
		return fmt.Errorf("worker: there is no handler for the tube %s", tube)
	}
	return handle(ctx, job)
}
