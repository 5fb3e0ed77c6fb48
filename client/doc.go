// Package client puts jobs into beanpole, beanstalkd, or any other server of the
// beanstalk protocol, and takes them out.
//
// # A work queue in two minutes
//
// A program puts a job, some bytes, into a tube. A worker reserves it: from now on
// the job is the worker's, for as long as its time to run allows. When the work is
// done the worker deletes the job. If the worker dies instead, or is silent for
// longer than the time to run, the server gives the job to another.
//
//	c, err := client.Dial(ctx, "127.0.0.1:11300", nil)
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//
//	id, err := c.Put(ctx, client.NewJob{Tube: "mail", Body: []byte("hello")})
//
//	err = c.WatchOnly(ctx, "mail")
//	job, err := c.Reserve(ctx) // waits for one
//	...                        // the work
//	err = job.Delete(ctx)
//
// # What to use
//
//   - To put jobs from a program with many goroutines: a [Pool].
//   - To work on jobs: package worker, which looks after times to run, failures,
//     retries and an orderly stop.
//   - A [Conn] where one goroutine wants the protocol itself: every command is a
//     method of it.
//   - To spread jobs over servers that do not know each other: [Servers].
//   - To put, take or delete many jobs at once: [Conn.PutMany], [Conn.ReserveMany],
//     [Conn.DeleteMany] and their kin, also of a pool and of a set of servers. A hundred
//     jobs take one round trip. [DeleteJobs] deletes those that were reserved.
//   - To list, delete and move the jobs of a tube: [Conn.Jobs], [Conn.FlushTube]
//     and [Conn.MoveJobs], which only beanpole has. With a pool, in [Pool.Do].
//   - In tests: package beanpoletest, a server inside the test.
//
// # Errors
//
// Each answer of a server that is no success is an error to be tested for with
// errors.Is, such as [ErrNotFound] or [ErrTimedOut]. errors.As finds an [*Error] in what
// the functions and methods of [Conn], [Pool] and [Servers] return: it tells the command,
// its job or tube, and the server. The error of a batch is a [*BatchError] of those.
//
// # Limits
//
// A limit is how many jobs a command takes at most: 1 or more, or [All], which has to be
// said. A limit of 0 is [ErrInvalid].
//
// # Contexts
//
// Every method takes a context and returns when it ends, with its cause. What has
// been sent cannot be taken back, so the connection is given up then, and the
// server takes back the jobs that it had reserved. Therefore a reserve that is
// cancelled loses no job: the one it would have got goes to the next who asks. A
// deadline does not cost a waiting reserve its connection; see [Conn.Reserve].
//
// # Connections that are lost
//
// A connection that is lost is replaced, without a word from the caller: the new one
// uses and watches the same tubes, and shows its token again. A command is sent a second time only if that
// does no harm, or if the first certainly did not arrive. If neither is so the
// error is [ErrOutcomeUnknown]. A put in particular is never repeated in silence:
//
//	id, err := pool.Put(ctx, job)
//	if errors.Is(err, client.ErrOutcomeUnknown) {
//		// The job may be there. To put it again may make it two; not to, none.
//	}
//
// The jobs that a lost connection had reserved are ready again. Their Delete may
// still succeed, if no other worker has them yet; Release, Bury and Touch fail
// with [ErrNotFound].
//
// # Times
//
// The protocol counts whole seconds, from 0 to 4294967295. Durations are rounded
// up to them.
//
// # Servers
//
// Tested against beanpole and beanstalkd 1.12. [Conn.ReserveJob] needs beanstalkd
// 1.12 or later; [Options].Token and [Options].TLS a server that has them, such as
// beanpole or beanstalkd-rs.
package client
