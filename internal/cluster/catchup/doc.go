// Package catchup brings a member up to date whose next entry the others' logs do not have
// any more: a donor sends it all jobs, while the donor's own work goes on, and the member
// goes on with the log from where that walk began.
//
//	sent, err := catchup.Send(ctx, conn, &donor)          // at the donor
//	got, err := catchup.Receive(conn, epoch, take)        // at the member, whose engine is empty
//
// # Why it is right
//
// The walk visits each job once, some hundred in a turn, and turns with changes come
// between. Let all entries up to i be in the donor's engine when the walk begins, and none
// after j when it ends. The member takes the whole walk first, and then all entries after
// i, some of whose facts the walk has seen already. From j on it has the state that the log
// says. For facts of different jobs do not touch each other; so look at one job at an entry
// k, not before j, and at the last fact about it after i:
//
//   - There is none: it was there all the time, and was visited in that state.
//   - It is a delete: the job is gone. An id is not used again.
//   - It is a put or a move: it says everything.
//   - It is a state, which says all but tube and body. Either the job was there at i and is
//     not deleted: then it was visited with its body, and its tube is that of the visit or
//     of a later move. Or its put comes after i, too.
//
// Pauses are facts that say everything, by tube; they come at the end of the walk, as does
// the highest id. Entries must not be applied before the end of the walk: a job that was
// deleted meanwhile would come back.
//
// # What the caller sees to
//
// Before j the member has a state that never was. It must not be a donor, nor be compared
// with others, before it has applied j ([Received.Until]). The others keep all entries after
// i for it ([Received.From]).
//
// A leader's engine is ahead of what is committed. What the walk has seen of that may be
// lost with its epoch, so j must be committed ([Donor.Settled]); if the epoch ends before,
// the walk ends with an error and does not count. Nothing that was received counts before
// Receive has returned without an error.
//
// The package knows no connections and no clock. Both sides hold at most a slice of the walk
// in memory, about a MiB or one job; a receiver that is slow makes the sender wait in
// Write, outside of turns. Who wants an end to that closes the connection.
//
// Start reading at send.go.
package catchup
