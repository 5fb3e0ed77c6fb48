// Package load is a closed-loop load generator for servers that speak the
// beanstalk protocol. Responder is a server that only answers: the throughput that the
// generator measures with it is the generator's ceiling. Package bench compares
// servers with each other.
//
// # What is measured
//
// Closed loop means that each connection keeps a fixed number of commands in
// flight and sends the next one only when a reply has come. The latency of a
// command is the time from just before the write that carries it to just after the
// read that brought its reply, on the monotonic clock. It includes the time that a
// reply waits in the generator's own socket buffer, which is the same for every server;
// the ceiling shows how long that can be. A closed loop does not show what happens to a
// server that gets more commands than it can execute: a slow server slows the generator.
// So compare latencies only at the same throughput or the same concurrency.
//
// The generator verifies everything. Every reply must fit the command, the ids of
// reserved jobs are those that are deleted, and each reserved body is compared with
// what was put. The first mismatch ends the run with an error that quotes the reply.
//
// # Why the loop cannot hang
//
// On every connection the number of reserves sent never exceeds the number of
// puts sent before them. Commands of a connection are executed in order, so at
// any moment the server has executed at least as many puts as reserves, whatever
// the order between connections: a reserve always finds a job.
//
// # How it keeps out of the way
//
// One thread drives all connections with one epoll loop: one read and one write
// per batch of replies, one epoll_wait for as many connections as are ready, no
// allocation and no goroutine switch. The responder is driven by the same loop.
// Run also reports the processor time of the generator itself: when that is near one core,
// the generator is the limit, and not the server. It runs on Linux only.
//
// Start reading at session.go (a connection), then peer.go, loop.go and run.go.
package load
