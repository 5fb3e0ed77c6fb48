// Package model has a model of what a member of a cluster adds to Raft, and a test that visits all states
// which it can come to, breadth first: the shortest way to a mistake is found. The simulations of core and
// cluster run the real code and find what chance finds; the model is small enough that nothing is left
// to chance.
//
// Raft itself is taken to be right: an election, or the copying of a log, is one step. The steps in between are ours:
//
//   - A turn is executed, its fact waits in the mailbox, the raft loop proposes it in its office or drops
//     it, Raft may refuse it, the reply goes when it is committed (state_test.go, decide_test.go).
//   - What is committed is applied: by a follower to engine and journal, by a leader to the journal; the
//     journal is synced, the log cut behind it, a member crashes in any moment, with or without what
//     was not synced (disk_test.go).
//   - An engine that is deposed is read again from the journal (decide_test.go).
//   - A member whose entries are cut gets a walk over a follower or the leader (walk_test.go).
//
// After each step the engine of each member is compared with what is committed, and with what it has decided. Planted
// mistakes show that the model can find such (model_test.go).
//
// It is not about leases, votes and members that change.
package model
