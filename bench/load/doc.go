// Package load implements a closed-loop load generator for servers of the beanstalk
// protocol. Responder is a server that only answers commands; its throughput is the
// generator's limit. Package bench compares servers.
//
// # Measurements
//
// In a closed loop, each connection keeps a fixed number of commands in flight and sends
// the next command only after a reply. The latency of a command is the time from just
// before its write to just after the read of its reply, on the monotonic clock. It
// includes the time that a reply waits in the generator's socket buffer, which is the
// same for every server. A closed loop does not show the behavior of a server that
// receives more commands than it can execute, because a slow server slows the generator.
// So compare latencies only at the same throughput or concurrency.
//
// The generator verifies everything: the form of every reply, the ids of the deleted
// jobs, and each reserved body. The first mismatch ends the run with an error that quotes
// the reply.
//
// # Why the loop cannot hang
//
// On every connection, the number of reserves never exceeds the number of earlier puts.
// The server executes the commands of a connection in order, so at any time, it has
// executed at least as many puts as reserves. Therefore, a reserve always finds a job.
//
// # Overhead
//
// One thread drives all connections with one epoll loop: one read and one write per batch
// of replies, one epoll_wait for all ready connections, no allocation and no goroutine
// switch. The same loop drives the responder. Run also reports the CPU time of the
// generator: if it is close to that of one core, the generator is the limit. It runs on
// Linux only.
//
// Start reading at session.go (a connection), then peer.go, loop.go and run.go.
package load
