// Package client puts jobs into beanpole, beanstalkd, or any other server of the
// beanstalk protocol, and reserves them.
//
// # A work queue in two minutes
//
// A program puts a job, a sequence of bytes, into a tube. A worker reserves the job for
// at most its time to run, and deletes it when the work is done. If the worker dies, or
// exceeds the time to run, the server gives the job to another worker.
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
// # Choosing a type
//
//   - To put jobs from a program with many goroutines: a [Pool]. Its address is a server,
//     or the list of a cluster's members: "host1:11300,host2:11300,host3:11300".
//   - To work on jobs: package worker, which handles times to run, failures,
//     retries and an orderly stop.
//   - For commands that depend on the state of a connection: a [Conn]. The methods that do
//     not depend on it are also methods of a Pool. Each method names its tube, so there is
//     no method for the command use.
//   - To spread jobs over unrelated servers, not the members of a cluster: [Servers].
//   - To put, reserve or delete many jobs at once: [Conn.PutMany], [Conn.ReserveMany],
//     [Conn.DeleteMany] and similar methods. A hundred jobs take one round trip.
//   - To list, search and move the jobs of a tube: package admin, the API of beanpole.
//   - In tests: package beanpoletest, a server inside the test.
//
// # Errors
//
// Replies that are not successful become errors, such as [ErrNotFound] or [ErrTimedOut];
// test for them with errors.Is. errors.As finds an [*Error] in the errors of commands: it
// contains the command, its job or tube, and the server. The error of a batch is a
// [*BatchError], which contains an [*Error] for each failed command.
//
// # Limits
//
// A limit is the maximum number of jobs that a command affects: at least 1, or [All].
// There is no default: a limit of 0 is [ErrInvalid].
//
// # Contexts
//
// Every method that sends a command accepts a context. When the context ends, the method
// returns its cause. A sent command cannot be canceled, so the connection is closed, and
// the server makes the jobs that it had reserved ready again. Therefore, a canceled
// reserve loses no job. [Conn.ReserveTimeout] keeps the connection.
//
// # Lost connections
//
// The client replaces a lost connection automatically. The new connection watches the
// same tubes, and sends the token again. The client repeats a command only if executing
// it twice is harmless, or if the server certainly did not receive it. Otherwise the
// error is [ErrOutcomeUnknown]. Before each put and each other command that cannot be
// repeated, the client checks whether the server has closed the connection. In
// particular, the client never repeats a put that might have been executed:
//
//	id, err := pool.Put(ctx, job)
//	if errors.Is(err, client.ErrOutcomeUnknown) {
//		// It is unknown whether the job exists. If it is put again, it can exist
//		// twice, unless a policy makes the jobs of the tube unique.
//	}
//
// The client repeats a delete, because job ids are never reused. If the server then
// replies that there is no such job, the error is [ErrOutcomeUnknown]: the first delete
// has removed the job, or another worker has it.
//
// The jobs that a lost connection had reserved are ready again. Their Delete still
// succeeds if no other worker has them yet; Release, Bury and Touch fail with
// [ErrNotFound].
//
// # Times
//
// The protocol uses whole seconds, from 0 to 4294967295. Durations are rounded up.
//
// # Servers
//
// The package is tested with beanpole and beanstalkd 1.12. [Conn.ReserveJob] needs
// beanstalkd 1.12 or later. [Options].Token and [Options].TLS need a server that supports
// them, such as beanpole or beanstalkd-rs.
package client
