// Package bench compares two servers: it starts them in turn, runs the same experiments on
// both, and writes Go benchmark results. The program in compare is its command line.
//
// # The experiments
//
// Suites are tables of loads (package load): memory, for servers that keep nothing on
// disk; journal, for servers with a log; and crowd, where tubes or idle connections burden
// a server without taking part in the load. Footprint measures the resident memory of a long
// queue, whether it is given back, and the memory of delayed and buried jobs. Restart
// measures the time from a crash to the first reply.
//
// # The method
//
// A round is a trial on A, on B, and on the responder if there is one. The servers take
// turns, so that no server profits from a quiet minute of the machine. Each trial starts a
// new process, so that none inherits memory.
//
// The cost of the responder, which only answers, is the part of any server's cost that is
// system calls.
//
// Generator and server share the processors of one machine: compare A with B, not with
// another machine. Memory and processor time are the kernel's, from /proc. load.Run checks
// every reply, and jobs are counted.
//
// Start reading at experiment.go and trial.go, then suites.go.
package bench
