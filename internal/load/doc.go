// Package load is a closed-loop load generator for servers that speak the
// beanstalk protocol. It is what runs behind "beanpole bench".
//
// It puts one load on one server that runs already:
//
//	r, err := load.Run(ctx, load.Options{Addr: "127.0.0.1:11300"})
//
// Responder is a server that does nothing but answer. What the generator measures
// against it is as fast as the generator can be at all, its ceiling. Package bench
// compares servers with each other.
//
// # What is measured
//
// Closed loop means that each connection keeps a fixed number of commands in
// flight and sends the next one only when a reply has come. The latency of a
// command runs from just before the write that carries it to just after the
// read that brought its reply, on the monotonic clock. Time that a reply lies
// in the generator's own socket buffer counts as latency; it is the same for
// every server, and the ceiling shows how large it can be. A closed loop does
// not show what happens to a server that is offered more than it can take:
// a slow server slows the generator, so compare latencies only at like
// throughput or like concurrency.
//
// Nothing is taken on trust. Every reply must be the one that the command calls
// for, ids that come from a reserve are the ones that are deleted, and each
// reserved body is compared with what was put. The first surprise ends the run
// with an error that quotes the reply.
//
// # Why the loop cannot hang
//
// On every connection the number of reserves sent never exceeds the number of
// puts sent before them. Commands of a connection are executed in order, so at
// any moment the server has executed at least as many puts as reserves, however
// the connections are interleaved: a reserve always finds a job. Only the mix
// Wake lets workers wait, and there on purpose: all of them do when it begins,
// and no more jobs are under way than there are workers.
//
// # How it keeps out of the way
//
// One thread drives all connections with one epoll loop: one read and one write
// per batch of replies, one epoll_wait for as many connections as are ready, no
// allocation and no goroutine switch. The responder is driven by the same loop.
// What the loop drives, a peer, knows commands and replies but no sockets. Run
// also reports the processor time that the generator itself took: when that comes
// near one core per thread, the result says more about the generator than about
// the server.
//
// # What it does not do
//
// It runs on Linux only. It has no open-loop (fixed rate) load, no coordination of
// several generator machines, no TLS. It leaves its jobs behind only in the mix
// Put, when a Backlog or Occupied tubes were asked for, or when a run fails.
//
// Start reading at session.go (a connection), then peer.go, loop_linux.go and
// run.go.
package load
