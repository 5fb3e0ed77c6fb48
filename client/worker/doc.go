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
// What becomes of a job is what the function returns. nil: it is deleted. An error:
// it is released, with its priority and a delay that doubles with each try, and
// buried after ten tries. An error of [Bury] or [Retry]: what that says. A panic
// is an error too. The tries are those that the server counts, so they add up over
// workers and restarts.
//
// While the function runs, the job is touched at every third of its time to run.
// Jobs can therefore have a short one: it only says how long the queue waits for a
// worker that has died.
//
// When its context ends, a worker takes no more jobs and lets the functions that
// run finish their work, for [Options].StopTimeout. Then their contexts are
// cancelled, and what they have not finished is ready again at once.
//
// A job may be handled twice: when its worker loses the connection before it could
// delete it, for example. Functions must be ready for that, as with every queue
// that loses nothing.
//
// What goes wrong is logged, with [log/slog]; see [Options].Logger. [Hooks] let a
// program count, measure and trace. A handler can be wrapped too:
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
// Each job that is worked on at a time has a connection of its own, as in the
// protocol a reserved job belongs to its connection and a waiting reserve blocks
// it. On that connection a job is deleted and the next taken in one round trip.
// With several servers it has a connection to each.
package worker
