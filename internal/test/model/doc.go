// Package model has a model of what a member of a cluster adds to Raft, and a test that visits all states
// which it can come to, breadth first: the shortest way to a mistake is found. The simulations of core and
// cluster run the real code and find what chance finds; the model is small enough that nothing is left
// to chance.
//
// Raft itself is taken to be right: an election, or the copying of a log, is one step. The steps in between are ours:
//
//   - A turn is executed, its fact waits in the mailbox, the raft loop proposes it in its epoch or drops
//     it, Raft may refuse it, the reply goes when it is committed (state_test.go, decide_test.go).
//   - What is committed is applied: by a follower to engine and journal, by a leader to the journal; the
//     journal is synced, the log cut behind it, a member crashes in any moment, with or without what
//     was not synced (disk_test.go).
//   - An engine that is deposed is read again from the journal. It is kept, without its sessions, if all that it has
//     decided is committed, as after a transfer; its journal may still be behind it then (decide_test.go).
//   - A member whose entries are cut gets a copy of the leader's journal, and installs it if Raft wants it
//     (snapshot_test.go).
//
// After each step the engine of each member is compared with what is committed, and with what it has decided. Planted
// mistakes show that the model can find such (model_test.go).
//
// It is not about leases, votes and members that change.
//
// # Planted mistakes
//
// All mistakes that are planted in what belongs to the cluster, and where they are found. A number is that of the seeds of
// a simulation up to the one that finds it; an adversary makes the moment in which the mistake does harm. In package cluster the
// scheduler takes part, so there it is another number each time.
//
//	a vote answered before its sync                    core: adversary
//	an append answered before its sync                 core: 19 seeds; cluster: 2; model
//	cleaning of a job in flight                        journal: 6; model
//	the mark of a put in flight not counted            journal: 20
//	the mark ahead of its facts                        journal: 1; model
//	the log cut at a mark that is not synced           core, journal, cluster: 1; model
//	the last entry of another leader skipped           cluster: 1; model
//	no lease; a lease during a transfer                core: adversaries
//	a vote just after a start                          core: adversary
//	the clock not carried over                         core: 1
//	roles not written before a cut                     core (TestPlantedRoles): 3
//	a snapshot of what is not agreed on                cluster: adversary; model
//	a snapshot that says it has more than it has       cluster: 1
//	a snapshot installed that Raft does not want       core: 77
//	Raft told of a snapshot before it is installed     core: 2
//	Raft told of later entries first                   core: 290
//	an offer that is lost and not repeated             core: 14
//	a follower that ticks                              cluster: 19
//	the handshake of a rolled-back disk accepted       cluster: adversary
//	a rolled-back disk that counts up to a known start cluster: adversary
//	an engine kept that has done what was dropped      cluster: 2; model
//	what waits for the loop taken for committed        model
//	a kept engine with its reservations                model
//	an entry applied though the epoch is over         model
//	a proposal without its epoch                      model
//	a refused proposal that leaves a hole              model
//
// Three have a test of their own that fails without what prevents them: the hard state not copied before a cut (TestPowerCuts in
// raftlog), a journal ahead of the commit at the start (Raft panics in the first seeds of core), waiting reserves answered
// by a deposed leader (TestDeposed in conversation).
package model
