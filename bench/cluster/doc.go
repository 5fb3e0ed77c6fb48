// Command cluster measures the cost of keeping a queue on three machines. It compares
// puts to a single beanpole server that syncs before each reply, to the leader and to a
// follower of a cluster with three members, and to three NATS JetStream servers that sync
// each write. Ratios are computed within a round.
//
//	go run ./cluster -beanpole ../bin/beanpole -rounds 5 -duration 2s
//
// All servers and clients share the processors and the disk of this machine. A put to
// beanpole is a command on its own connection, and the generator is one thread. A put to
// JetStream is a publication that waits for its acknowledgment, through NATS's Go client,
// with a connection and goroutines per client. That generator uses more CPU time. The
// stream is a work queue, and its clients connect to its leader.
//
// With -gaps N, the command instead stops the leader N times in each of several ways. It
// prints the time without an answer for a client that puts jobs one at a time and
// switches members automatically. The death of a leader ends the connections of its
// clients, so the client is connected to the leader. A paused leader keeps connections
// open, so in that case, the client is connected to a follower.
//
// With -memory N, the command instead puts -jobs jobs to a single server and to the
// leader of a cluster, N times with new processes. It prints the resident memory of each
// process when all members have all jobs.
package main
