// Package engine is the queue itself: jobs, tubes, sessions and timers, as a
// pure state machine. It has no clock, no I/O, no goroutine and no lock.
//
// Every verb of the protocol that concerns jobs or tubes is a method of
// [Engine]. The caller passes the time, in nanoseconds of a clock that never
// goes back, and must not call two methods at once: the broker owns the engine
// and runs it in turns.
//
//	e := engine.New(engine.Options{})
//	s := e.Open(waiter)                                   // a client connects
//	id, _ := e.Put(now, s, engine.Spec{TTR: 60}, body)    // put 0 0 60 ...
//	job, outcome := e.Reserve(now, s, engine.Forever)     // reserve
//	e.Tick(now)                                           // delays, TTRs, pauses, timeouts
//	next := e.Next()                                      // when to tick again
//
// A reserve that finds no job returns [Waiting]; its answer comes later, from within some
// other call, through the session's [Waiter].
//
// # Where jobs live
//
// A job is a fixed record in a slab without pointers (job.go), its body a slot of a size
// class (bodies.go), its id a place of a tree (index.go). Ten million jobs are some tens
// of thousands of objects to the garbage collector. A job is in one of the three queues
// of its tube (queue.go), ready, delayed or buried, or in the heap of the session that
// has reserved it (heap.go). A queue keeps the jobs that come in order in runs (run.go),
// where neither a put nor a reserve nor a delete depends on how many there are, and the
// others in a heap. Whatever comes due has its tube or session in one heap of timers
// (timer.go).
//
// # What takes several turns
//
// Some operations are too long for one turn: a kick of a million jobs, the close of a
// session that holds a million, the end of a pause with a million waiting workers, a
// million delays that end in the same second. They are done in slices, and other clients
// have their turns in between. [Engine.ContinueKick] and [Engine.Tick] do the slices,
// [Engine.ContinueSweep] those of a clear or a move, and [Engine.ContinuePage] those of
// the search for a page of jobs. The engine counts the work of a turn (work.go), and
// [Engine.Spent] reports when it is enough. A list of tubes is formatted outside of
// turns, from a [Names].
//
// # For managers
//
// A manager of a queue has no session: [Engine.PutInto], [Engine.KickJob],
// [Engine.DeleteJob], [Engine.BuryJob] and [Engine.ReleaseJob] name a tube or a job of
// any session, and [Engine.Sessions] lists all sessions.
//
// # What outlives the process
//
// Each durable effect is emitted as a [Change], a fact that stands alone, and
// [Engine.Restore] takes the same facts back in (change.go). Reservations and touches are not
// changes: a reservation ends with its session. Each end of a reservation is a change, with
// its [Failure] unless the job is deleted (failure.go).
//
// # What is measured
//
// Each reserve adds to how long jobs have waited since they became ready, each delete,
// release and bury of a reserved job to how long they were worked on ([Engine.Times]). No
// memory is spent on it: a job has one time, whose meaning goes with its state.
//
// # Invariants
//
// They are written, numbered, beside the fields they bind, and [Engine.Check] tests them
// all. The one to know is I3: a tube that is not paused has no ready job or no waiting
// session. So matching is local: a job that becomes ready goes to the first waiter of its
// own tube, or stays in the tube.
//
// # What it does not do
//
// It knows no bytes of the protocol, no sockets and no files, does not count commands,
// and does not limit how many sessions there are. Nothing in it takes time proportional
// to the number of jobs, tubes or sessions, but a reserve looks at each tube that its
// session watches.
//
// Behaviour comes from beanstalkd 1.13; doc/differences.md lists each difference. Start
// reading at job.go, then engine.go, then reserve.go.
package engine
