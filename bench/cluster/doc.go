// Command cluster measures what it costs to keep a queue on three machines: puts of clients at a single beanpole that
// syncs before each reply, at the leader and at a follower of a cluster of three, and at a cluster of three
// NATS JetStream servers that sync always. Ratios are those of the same round.
//
//	go run ./cluster -beanpole ../bin/beanpole -rounds 5 -duration 2s
//
// All servers and clients share this machine, its processors and its disk. A put of beanpole is a command on a connection of its
// own, and the generator is one thread. A put of JetStream is a publication that waits for its acknowledgement, through the Go client of
// NATS, a connection for each client, with its goroutines: that generator takes more of the processors. The stream is a work queue, and
// its clients are at its leader.
//
// With -gaps N it takes the leader away N times in each of some ways instead, and prints for how long a client that puts one job
// after the other, and goes to another member by itself, had no answer. A leader that is killed ends its client's connection, so that
// client is the leader's own. One that stands still does not: there the client is that of a follower.
//
// With -memory N it puts -jobs jobs at a single server and at the leader of a cluster instead, N times, each time with new processes,
// and prints the resident memory of each when all members have all jobs.
package main
