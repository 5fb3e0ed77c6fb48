// Package engine implements the queue: jobs, tubes, sessions and timers, as a pure state
// machine. It has no clock, I/O, goroutines or locks.
//
// Every protocol command on jobs or tubes is a method of [Engine]. The caller passes the
// time, in nanoseconds of a monotonic clock. Methods must not be called concurrently: the
// broker owns the engine and runs it in turns.
//
//	e := engine.New(engine.Options{})
//	s := e.Open(waiter)                                   // a client connects
//	id, _ := e.Put(now, s, engine.Spec{TTR: 60}, body)    // put 0 0 60 ...
//	job, outcome := e.Reserve(now, s, engine.Forever)     // reserve
//	e.Tick(now)                                           // delays, TTRs, pauses, timeouts
//	next := e.Next()                                      // when to tick again
//
// A reserve that finds no job returns [Waiting]. The session's [Waiter] receives the
// answer during a later call.
//
// # Where jobs live
//
// A job is a fixed-size record in a slab without pointers (job.go). Its body is in a slot
// of a size class (bodies.go), and a radix tree finds it by id (index.go). To the garbage
// collector, ten million jobs are 200,000 objects. A job is in one of its tube's three
// queues, ready, delayed or buried, or in the queue of the session that reserved it
// (queue.go). If jobs arrive in order, the cost of a put, reserve or delete does not
// depend on their number. One heap of timers contains all tubes and sessions with due
// times (timer.go).
//
// # Operations of several turns
//
// Some operations are too long for one turn: a kick of a million jobs, closing a session
// that holds a million, or a million delays that end in the same second. They run in
// slices, and other clients have turns in between. [Engine.Tick] executes slices, and so
// do [Engine.ContinueSweep] for a kick, a clear or a move and [Engine.ContinuePage] for a
// page of jobs. The engine counts the work of a turn
// (work.go), and [Engine.Spent] reports whether the limit is reached. A list of tubes is
// formatted outside turns, from a [Names].
//
// # For managers
//
// Management functions need no session. [Engine.PutInto], [Engine.KickJob],
// [Engine.DeleteJob], [Engine.BuryJob] and [Engine.ReleaseJob] accept a tube or a job of
// any session. [Engine.Sessions] lists all sessions.
//
// # Durable state
//
// Each durable effect is emitted as a [Change], which is complete in itself, and
// [Engine.Restore] applies Changes again (change.go). Reservations and touches are not
// changes, because a reservation ends with its session. Each end of a reservation is a
// change, with its [Failure] unless the job is deleted (failure.go).
//
// # Measurements
//
// Each reserve adds to the time that jobs were ready. Each delete, release and bury of a
// reserved job adds to the time of the work ([Engine.Times]). This needs no memory per
// job: a job has one time, whose meaning depends on its state.
//
// # Invariants
//
// The invariants are numbered, and documented at the fields that they concern.
// [Engine.Check] tests all of them. The most important is I3: a tube that is not paused
// has no ready job or no waiting session. Matching is therefore local: a job that becomes
// ready goes to the first waiter of its own tube, or stays in the tube.
//
// # Limits
//
// The engine does not handle protocol bytes, sockets or files. It does not count commands
// or limit the number of sessions. No operation takes time proportional to the number of
// jobs, tubes or sessions, except that a reserve examines each tube that its session
// watches.
//
// The behavior follows beanstalkd 1.13; doc/differences.md lists the differences. Start
// reading at job.go, then engine.go, then reserve.go.
package engine
