package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// A Mux maps tube names to handlers:
//
//	mux := worker.Mux{"mail": sendMail, "thumbnails": shrink}
//	w, err := worker.New(mux.Handle, &worker.Options{Tubes: mux.Tubes()})
//
// Alternatively, use a worker per tube, each with its own concurrency. With servers other
// than beanpole, which do not send the tube of a job, this also saves the round trip in
// which a Mux of several tubes requests it.
type Mux map[string]Handler

// Tubes returns the names of the tubes, for [Options].Tubes.
func (m Mux) Tubes() []string { return slices.Sorted(maps.Keys(m)) }

// Handle is a [Handler] for all tubes of the Mux. A job of another tube fails.
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
		return fmt.Errorf("worker: no handler for the tube %s", tube)
	}
	return handle(ctx, job)
}
