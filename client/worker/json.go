package worker

import (
	"context"
	"encoding/json"
	"fmt"
)

// JSON returns a handler of jobs whose bodies are JSON values of type T. A job with
// another body is buried at once, because another try would fail, too.
func JSON[T any](handle func(ctx context.Context, job *Job, value T) error) Handler {
	return func(ctx context.Context, job *Job) error {
		var value T
		if err := json.Unmarshal(job.Body, &value); err != nil {
			return Bury(fmt.Errorf("worker: the body is not a %T: %w", value, err))
		}
		return handle(ctx, job, value)
	}
}
