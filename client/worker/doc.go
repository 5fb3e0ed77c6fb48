// Package worker runs a function for each job of a queue.
//
//	w, err := worker.New(func(ctx context.Context, job *worker.Job) error {
//		return send(ctx, job.Body)
//	}, &worker.Options{
//		Servers:     []string{"127.0.0.1:11300"},
//		Tubes:       []string{"mail"},
//		Concurrency: 10,
//	})
//	if err != nil {
//		return err
//	}
//	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
//	defer stop()
//	return w.Run(ctx)
//
// The result of the function determines the end of the job. If it returns nil, the job is
// deleted. If it returns an error or panics, the job is released with a delay that
// doubles with each try. It is buried after ten tries; a kick grants ten more. Errors
// made by [Bury] and [Retry] override this. The server counts the tries, so they add up
// over workers and restarts.
//
// While the function runs, the worker touches the job at every third of its time to run.
// So jobs can have a short time to run: it is the time after which the queue gives the
// job of a dead worker to another. [Options].Timeout limits the function, by default to
// an hour.
//
// When its context ends, a worker reserves no more jobs and lets running functions
// finish, for at most [Options].StopTimeout. Then it cancels their contexts, and
// unfinished jobs are ready again at once.
//
// A job can be handled twice, for example if its worker loses the connection before it
// can delete the job. Functions must tolerate this, as with every queue that delivers at
// least once.
//
// The worker logs errors with [log/slog]; see [Options].Logger. [Hooks] get the outcome
// of each job. [Options].Use wraps the handler, for example to measure or trace it:
//
//	func logged(next worker.Handler) worker.Handler {
//		return func(ctx context.Context, job *worker.Job) error {
//			slog.InfoContext(ctx, "job", "id", job.ID)
//			return next(ctx, job)
//		}
//	}
//
// # Connections
//
// A worker reserves as many jobs as handlers are free ([Options].Concurrency), and no
// more, because their times to run start at once. In the same round trip, it deletes
// finished jobs. So it has few connections, at most one more than jobs: a reserved job
// belongs to its connection, and a waiting reserve blocks its connection.
//
// beanpole has a command that reserves many jobs. With other servers, the worker sends
// several commands in a round trip: more while all return a job, and otherwise fewer.
//
// A cluster is one address, the list of its members. With several unrelated servers, the
// worker has [Options].Concurrency handlers for each.
package worker
