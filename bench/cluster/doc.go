// Command cluster measures the cost of keeping a queue on three machines. It compares
// puts at a single beanpole that syncs before each reply, at the leader and at a follower
// of a cluster of three, and at three NATS JetStream servers that sync always. Ratios are
// computed within a round.
//
//	go run ./cluster -beanpole ../bin/beanpole -rounds 5 -duration 2s
//
// All servers and clients share the processors and the disk of this machine. A put to
// beanpole is a command on its own connection, and the generator is one thread. A put to
// JetStream is a publication that waits for its acknowledgement, through the Go client of
// NATS, with a connection and goroutines per client. That generator uses more CPU time.
// The stream is a work queue, and its clients are at its leader.
//
// With -gaps N, the command instead stops the leader N times in each of several ways. It
// prints the time without an answer for a client that puts jobs one at a time and
// switches members automatically. A killed leader ends its client's connection, so that
// client is the leader's own. A paused leader does not, so in that case the client is a
// follower's.
//
// With -memory N, the command instead puts -jobs jobs at a single server and at the
// leader of a cluster, N times with new processes. It prints the resident memory of each
// process when all members have all jobs.
package main
